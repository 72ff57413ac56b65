"""Convolutions and pools with channels last."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import channels_first
from cuvil.rewrite.axes import channels_last as to_last
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, rank_of

_CONV = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 0, 0, 1)}
_POOL = {"kind": "max", "kernel": (2,), "strides": (2,), "dilations": (1,), "pads": (0, 0)}


@rule(
    "conv", "conv_transpose", "pool",
    example=[
        case(
            lambda b, x: b.conv(x, b.const(sample(4, 3, 2, 2)), **_CONV), x="[B, 3, 5, H] f32"
        ),
        case(
            lambda b, x: b.conv_transpose(x, b.const(sample(3, 4, 2, 2)), **_CONV),
            x="[B, 3, 5, H] f32",
        ),
        case(lambda b, x: b.pool_(x, **_POOL, out=(2,)), x="[B, 3, 5] f32"),
    ],
    near_miss=case(
        lambda b, x: b.pool_(x, **_POOL, out=(2,), layout="channels_last"), x="[B, 5, 3] f32"
    ),
    tolerance=1e-5,
)  # fmt: skip
def channels_last(b: Rewriter, op: Operation) -> Value | None:
    """Between two transposes, which other rules move towards the outputs and cancel."""
    if attrs_of(op).layout != "channels_first":
        return None
    rank = rank_of(op.operands[0])
    x = b.transpose(op.operands[0], perm=to_last(rank))
    result = b.like(op, [x, *op.operands[1:]], layout="channels_last")
    return b.transpose(result, perm=channels_first(rank))
