"""What sums of codes are scaled and shifted by."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import dims_of, dtype_of, is_constant, one_user

_CODES = (np.arange(32 * 40).reshape(32, 40) * 37 % 255 - 127).astype(np.int8)


def _sums(b: Rewriter, x: Value) -> Value:
    total = b.cast(b.contract(x, b.const(_CODES), spec="mk,kn->mn", accumulate="i32"), to="f32")
    result: Value = b.mul(total, b.const(sample(40)))
    return result


@rule(
    "mul",
    example=case(
        lambda b, x: b.mul(b.add(_sums(b, x), b.const(sample(40, seed=1))), b.scalar(3, "f32")),
        x="[B, 32] u8",
    ),
    near_miss=[
        case(
            lambda b, x, y: b.mul(b.add(_sums(b, x), y), b.scalar(3, "f32")),
            x="[B, 32] u8", y="[40] f32",
        ),
        case(lambda b, x: b.mul(b.add(b.mul(x, b.scalar(2, "f32")), b.const(sample(4))),
                                b.scalar(3, "f32")), x="[B, 4] f32"),
    ],
    tolerance=1e-5,
)  # fmt: skip
def scale_of_sums(b: Rewriter, op: Operation) -> Value | None:
    """(total * c + d) * s is total * (c * s) + d * s: one instruction."""
    value, scale = op.operands
    shifted = b.producer(value, "add")
    if shifted is None or one_user(value) is not op or not is_constant(scale):
        return None
    inner, shift = shifted.operands
    scaled = b.producer(inner, "mul")
    if scaled is None or one_user(inner) is not shifted or not is_constant(shift):
        return None
    total, factor = scaled.operands
    cast = b.producer(total, "cast")
    if cast is None or dtype_of(cast.operands[0]).name != "i32" or not is_constant(factor):
        return None
    if not dims_of(total) == dims_of(inner) == dims_of(value) == dims_of(op.results[0]):
        return None
    result: Value = b.add(b.mul(total, b.mul(factor, scale)), b.mul(shift, scale))
    return result
