"""Convolutions of float32 in bfloat16, where a person asked for that."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rules.precision._bf16 import fits_conv, rounded
from cuvil.rules.precision._examples import CONV
from cuvil.rules.precision._tiles import by_tiles

_SHARE = 0.45  # a rounded sum takes half of the time of one in float32


@rule(
    "conv",
    example=case(lambda b, x: b.conv(x, b.const(sample(4, 32, 1, 1)), **CONV),
                 x="[B, 3, 5, 32] f32"),
    near_miss=[
        case(lambda b, x: b.conv(x, b.const(sample(64, 64, 3, 3)), **CONV),
             x="[1, 30, 30, 64] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(4, 3, 1, 1)), **CONV), x="[B, 3, 5, 3] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(32, 1, 1, 1)), groups=32, **CONV),
             x="[B, 3, 5, 32] f32"),
    ],
    on=False,
    tolerance=3e-2,
)  # fmt: skip
def bf16_conv(b: Rewriter, op: Operation) -> Value | None:
    """A convolution on rounded factors, where fewer products of float32 are not as fast."""
    if not fits_conv(op):
        return None
    return None if by_tiles(op, _SHARE) else rounded(b, op)
