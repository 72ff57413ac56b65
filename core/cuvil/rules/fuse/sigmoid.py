"""The logistic function from exponentials."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


@rewrites(
    lambda p, x: 1 / (1 + p.exp(-x)),
    example=case(
        lambda b, x: b.div(b.scalar(1, x), b.add(b.exp(b.neg(x)), b.scalar(1, x))), x="[B, 9] f32"
    ),
    near_miss=case(
        lambda b, x: b.div(b.scalar(1, x), b.add(b.exp(x), b.scalar(1, x))), x="[B, 9] f32"
    ),
    tolerance=1e-6,
)
def sigmoid(b: Rewriter, x: Value) -> Value:
    """1 / (1 + e**-x)."""
    result: Value = b.sigmoid(x)
    return result
