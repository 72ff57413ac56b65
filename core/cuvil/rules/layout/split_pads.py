"""Pads of convolutions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, rank_of

_LAST = {"strides": (1,), "dilations": (1,), "layout": "channels_last"}


@rule(
    "conv",
    example=case(
        lambda b, x: b.conv(x, b.const(sample(4, 3, 2)), pads=(1, 2), **_LAST), x="[B, 5, 3] f32"
    ),
    near_miss=case(
        lambda b, x: b.conv(x, b.const(sample(4, 3, 2)), pads=(0, 0), **_LAST), x="[B, 5, 3] f32"
    ),
    tolerance=1e-6,
)
def split_pads(b: Rewriter, op: Operation) -> Value | None:
    """A channels-last convolution reads an image that is padded before."""
    a, x = attrs_of(op), op.operands[0]
    if a.layout != "channels_last" or not any(a.pads):
        return None
    n = rank_of(x) - 2
    padded = b.pad(
        x, b.scalar(0, x), low=(0, *a.pads[:n], 0), high=(0, *a.pads[n:], 0), mode="constant"
    )
    return b.like(op, [padded, *op.operands[1:]], pads=(0,) * 2 * n)
