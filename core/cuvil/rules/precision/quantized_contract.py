"""Matrix products of scaled codes."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of
from cuvil.rules.precision._codes import Factors, factors_of, finished, fits, too_few

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
    factors = product_factors(b, op)
    if isinstance(factors, str):
        return None
    codes, spec = (factors.rows.codes, factors.matrix.codes), attrs_of(op).spec
    total = b.contract(*codes, spec=spec, accumulate="i32")
    return finished(b, total, factors, _axis(op))


def product_factors(b: Rewriter, op: Operation) -> Factors | str:
    """What the bytes of a product are; why it is not one of bytes, where it is not."""
    spec, attrs = parse(attrs_of(op).spec), attrs_of(op)
    letters, x, w = spec.a, op.operands[0], op.operands[1]
    if attrs.accumulate:
        return f"it is one that adds up in {attrs.accumulate}"
    if len(spec.columns) != 1 or spec.out[-1:] != spec.columns or spec.batch:
        return "it is no product of rows by one matrix"
    if letters[-1:] not in spec.summed or not letters:
        return "the terms of its sums do not lie together"
    if not fits(dims_of(x)[-1]):
        return too_few(dims_of(x)[-1])
    return factors_of(b, x, w, _axis(op))


def _axis(op: Operation) -> int:
    """The axis of the matrix along which its columns lie."""
    spec = parse(attrs_of(op).spec)
    return spec.b.index(spec.columns)
