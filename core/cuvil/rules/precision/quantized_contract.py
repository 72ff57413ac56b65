"""Matrix products of scaled codes."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of
from cuvil.rules.precision._codes import factors_of, finished, fits

_CODES = (np.arange(32 * 40).reshape(32, 40) * 37 % 255 - 127).astype(np.int8)
_SCALES = (np.arange(1, 41, dtype=np.float32) / 64).reshape(1, 40)


@rule(
    "contract",
    example=[
        case(
            lambda b, x: b.contract(
                b.dequantize_linear(x, b.scalar(0.5, "f32"), b.scalar(7, "u8")),
                b.dequantize_linear(b.const(_CODES), b.const(_SCALES)), spec="mk,kn->mn",
            ),
            x="[B, 32] u8",
        ),
        case(
            lambda b, x, z: b.contract(
                b.sub(b.cast(x, to="i32"), b.cast(z, to="i32")),
                b.cast(b.const(_CODES), to="i32"), spec="bmk,kn->bmn",
            ),
            x="[B, 3, 32] i8", z="[] i8",
        ),
    ],
    near_miss=case(
        lambda b, x, w: b.contract(
            b.dequantize_linear(x, b.scalar(0.5, "f32")),
            b.dequantize_linear(w, b.scalar(0.25, "f32")), spec="mk,kn->mn",
        ),
        x="[3, 32] u8", w="[32, 5] i8",
    ),
    tolerance=1e-5,
)  # fmt: skip
def quantized_contract(b: Rewriter, op: Operation) -> Value | None:
    """A product of numbers that stand as bytes is one of the bytes, summed exactly in i32."""
    spec, attrs = parse(attrs_of(op).spec), attrs_of(op)
    letters, x, w = spec.a, op.operands[0], op.operands[1]
    if attrs.accumulate or len(spec.columns) != 1 or spec.out[-1:] != spec.columns or spec.batch:
        return None
    if letters[-1:] not in spec.summed or not letters or not fits(dims_of(x)[-1]):
        return None
    axis = spec.b.index(spec.columns)
    factors = factors_of(b, x, w, axis)
    if factors is None:
        return None
    codes = factors.rows.codes, factors.matrix.codes
    total = b.contract(*codes, spec=attrs.spec, accumulate="i32")
    return finished(b, total, factors, axis)
