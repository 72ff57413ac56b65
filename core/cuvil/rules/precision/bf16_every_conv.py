"""All convolutions of float32 in bfloat16, where Winograd's way is not allowed."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rules.precision._bf16 import fits_conv, rounded
from cuvil.rules.precision._examples import CONV


@rule(
    "conv",
    example=case(lambda b, x: b.conv(x, b.const(sample(4, 32, 1, 1)), **CONV),
                 x="[B, 3, 5, 32] f32"),
    near_miss=[
        case(lambda b, x: b.conv(x, b.const(sample(4, 3, 1, 1)), **CONV), x="[B, 3, 5, 3] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(32, 1, 1, 1)), groups=32, **CONV),
             x="[B, 3, 5, 32] f32"),
    ],
    on=False,
    tolerance=3e-2,
)  # fmt: skip
def bf16_every_conv(b: Rewriter, op: Operation) -> Value | None:
    """A convolution on rounded factors."""
    return rounded(b, op) if fits_conv(op) else None
