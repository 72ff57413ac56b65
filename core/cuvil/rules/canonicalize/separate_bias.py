"""Biases of convolutions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, rank_of

_ONE = {"strides": (1,), "dilations": (1,), "pads": (0, 0)}


@rule(
    "conv", "conv_transpose",
    example=case(
        lambda b, x: b.conv(x, b.const(sample(4, 3, 2)), b.const(sample(4)), **_ONE),
        x="[B, 3, 5] f32",
    ),
    near_miss=case(lambda b, x: b.conv(x, b.const(sample(4, 3, 2)), **_ONE), x="[B, 3, 5] f32"),
    tolerance=1e-6,
)  # fmt: skip
def separate_bias(b: Rewriter, op: Operation) -> Value | None:
    """A bias is an addition behind the convolution: the epilogue adds it with whatever follows."""
    if len(op.operands) < 3:
        return None
    result, bias = b.like(op, op.operands[:2]), op.operands[2]
    if attrs_of(op).layout == "channels_first":
        bias = b.reshape(bias, dims=(*dims_of(bias), *[1] * (rank_of(result) - 2)))
    return b.add(result, bias)
