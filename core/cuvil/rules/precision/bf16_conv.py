"""Convolutions of float32 in bfloat16, where a person asked for that."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, is_constant
from cuvil.rules.precision._bf16 import fits, rounded

_CONV = {"strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4, "layout": "channels_last"}


@rule(
    "conv",
    example=case(lambda b, x: b.conv(x, b.const(sample(4, 32, 1, 1)), **_CONV),
                 x="[B, 3, 5, 32] f32"),
    near_miss=[
        case(lambda b, x: b.conv(x, b.const(sample(4, 3, 1, 1)), **_CONV), x="[B, 3, 5, 3] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(32, 1, 1, 1)), groups=32, **_CONV),
             x="[B, 3, 5, 32] f32"),
    ],
    on=False,
    tolerance=3e-2,
)  # fmt: skip
def bf16_conv(b: Rewriter, op: Operation) -> Value | None:
    """A channels-last convolution with constant taps, its image padded already."""
    a, weights = attrs_of(op), op.operands[1]
    plain = a.layout == "channels_last" and not any(a.pads) and len(op.operands) == 2
    return rounded(b, op) if plain and is_constant(weights) and fits(dims_of(weights)[1]) else None
