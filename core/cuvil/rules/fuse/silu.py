"""SiLU, also called swish."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


@rewrites(
    lambda p, x: x * p.sigmoid(x),
    lambda p, x: x / (1 + p.exp(-x)),
    example=[
        case(lambda b, x: b.mul(b.sigmoid(x), x), x="[B, 9] f32"),
        case(lambda b, x: b.div(x, b.add(b.exp(b.neg(x)), b.scalar(1, x))), x="[B, 9] f32"),
    ],
    near_miss=[
        case(lambda b, x, y: b.mul(b.sigmoid(x), y), x="[B, 9] f32", y="[B, 9] f32"),
        case(lambda b, x: ((s := b.sigmoid(x)), b.mul(s, x)), x="[B, 9] f32"),
    ],
    tolerance=1e-6,
)
def silu(b: Rewriter, x: Value) -> Value:
    """x * sigmoid(x)."""
    result: Value = b.silu(x)
    return result
