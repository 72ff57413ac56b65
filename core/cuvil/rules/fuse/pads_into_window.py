"""Pads of their own before convolutions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.conv import spatial_axes
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, number, one_user, rank_of

_ONE = {"strides": (1,), "dilations": (1,), "pads": (0, 1)}


@rule(
    "conv",
    example=case(
        lambda b, x: b.conv(
            b.pad(x, b.scalar(0, x), low=(0, 0, 1), high=(0, 0, 2)),
            b.const(sample(4, 3, 2)), **_ONE,
        ),
        x="[B, 3, 5] f32",
    ),
    near_miss=[
        case(
            lambda b, x: b.conv(
                b.pad(x, b.scalar(0, x), low=(0, 1, 1), high=(0, 0, 2)),
                b.const(sample(4, 4, 2)), **_ONE,
            ),
            x="[B, 3, 5] f32",
        ),
        case(
            lambda b, x: b.conv(
                b.pad(x, b.scalar(1, x), low=(0, 0, 1), high=(0, 0, 2)),
                b.const(sample(4, 3, 2)), **_ONE,
            ),
            x="[B, 3, 5] f32",
        ),
    ],
    tolerance=1e-6,
)  # fmt: skip
def pads_into_window(b: Rewriter, op: Operation) -> Value | None:
    """Zeros put around an image for one convolution are pads of the convolution."""
    source, a = b.producer(op.operands[0], "pad"), attrs_of(op)
    if source is None or one_user(source.results[0]) is not op or a.layout != "channels_first":
        return None
    p, rank = attrs_of(source), rank_of(op.operands[0])
    axes = spatial_axes(a.layout, rank)
    others = [i for i in range(rank) if i not in axes]
    if p.mode != "constant" or number(source.operands[1]) != 0:
        return None
    if any(p.low[i] or p.high[i] for i in others):
        return None
    if not all(isinstance(v, int) and v >= 0 for v in (*p.low, *p.high, *a.pads)):
        return None
    extra = [*(p.low[i] for i in axes), *(p.high[i] for i in axes)]
    pads = [x + y for x, y in zip(a.pads, extra, strict=True)]
    result: Value = b.like(op, [source.operands[0], *op.operands[1:]], pads=pads)
    return result
