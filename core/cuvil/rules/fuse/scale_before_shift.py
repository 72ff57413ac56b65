"""A factor behind a shift behind a convolution or product."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import dims_of, dtype_of, is_constant, one_user

_ONE = {"strides": (1,), "dilations": (1,), "pads": (0, 0)}


@rule(
    "mul",
    example=case(
        lambda b, x: b.mul(
            b.add(b.conv(x, b.const(sample(20, 3, 2)), **_ONE), b.const(sample(20, 1))),
            b.const(sample(20, 1, seed=1)),
        ),
        x="[B, 3, 5] f32",
    ),
    near_miss=case(
        lambda b, x: b.mul(b.add(x, b.const(sample(20, 1))), b.const(sample(20, 1))),
        x="[B, 20, 5] f32",
    ),
    tolerance=1e-5,
)
def scale_before_shift(b: Rewriter, op: Operation) -> Value | None:
    """(y + c) * s is y * s + c * s, so that s meets the weights that make y."""
    value, scale = op.operands
    shifted = b.producer(value, "add")
    if shifted is None or one_user(value) is not op or not is_constant(scale):
        return None
    y, shift = shifted.operands
    inner = b.producer(y, "conv", "conv_transpose", "contract")
    if inner is None or one_user(y) is not shifted or not is_constant(shift):
        return None
    if not dtype_of(y).is_float or not any(map(is_constant, inner.operands)):
        return None
    if dims_of(y) != dims_of(op.results[0]):
        return None
    result: Value = b.add(b.mul(y, scale), b.mul(shift, scale))
    return result
