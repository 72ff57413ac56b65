"""Products of half floats as such, where cpus multiply these or widen vectors of them."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, is_constant, name_of
from cuvil.rewrite.winograd_cost import GAIN
from cuvil.rules.precision._examples import CONV
from cuvil.rules.precision._tiles import by_tiles

_MATRIX, _TAPS = sample(33, 40, dtype="f2"), sample(32, 33, 1, 1, dtype="f2")


@rule(
    "contract",
    "conv",
    example=[
        case(lambda b, x: b.contract(x, b.const(_MATRIX), spec="mk,kn->mn"), x="[B, 33] f16"),
        case(lambda b, x: b.conv(x, b.const(_TAPS), **CONV), x="[B, 3, 5, 33] f16"),
    ],
    near_miss=[
        case(
            lambda b, x: b.contract(x, b.const(_MATRIX.astype(np.float32)), spec="mk,kn->mn"),
            x="[B, 33] f32",
        ),
        case(lambda b, x, y: b.contract(x, y, spec="mk,kn->mn"), x="[3, 33] f16", y="[33, 8] f16"),
        case(lambda b, x: b.conv(x, b.const(sample(64, 64, 3, 3, dtype="f2")), **CONV),
             x="[1, 30, 30, 64] f16"),
    ],
    on=False,
    tolerance=2e-3,
)  # fmt: skip
def half_factors(b: Rewriter, op: Operation) -> Value | None:
    """Sums are of float32 in any case, and rounded once; constant factors stay as small as they are
    in the model. What Winograd's way does with fewer products of floats is left alone."""
    kinds = {dtype_of(v).name for v in (*op.operands, *op.results)}
    if kinds != {"f16"} or attrs_of(op).accumulate:
        return None
    if not (_rows_by_matrix(op) if name_of(op) == "contract" else _taps(op)):
        return None
    result: Value = b.cast(b.like(op, list(op.operands), accumulate="f32"), to="f16")
    return result


def _rows_by_matrix(op: Operation) -> bool:
    spec = parse(attrs_of(op).spec)
    last, summed = spec.out[-1:], set(spec.summed)
    for matrix, (mine, others) in enumerate(((spec.a, spec.b), (spec.b, spec.a))):
        if last and last in mine and last not in others:
            return is_constant(op.operands[matrix]) and others[-1:] in summed
    return False


def _taps(op: Operation) -> bool:
    a, taps = attrs_of(op), op.operands[1]
    plain = a.layout == "channels_last" and not any(a.pads) and len(op.operands) == 2
    by_channel = a.groups > 1 and dims_of(taps)[1] == 1
    return plain and is_constant(taps) and not by_channel and not by_tiles(op, GAIN)
