"""Leaky ReLU from a maximum."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import Number, rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


@rewrites(
    lambda p, x, alpha: p.max(x, x * alpha),
    example=case(lambda b, x: b.max(b.mul(x, b.scalar(0.1, x)), x), x="[B, 9] f32"),
    near_miss=case(lambda b, x: b.max(b.mul(x, b.scalar(1.5, x)), x), x="[B, 9] f32"),
)
def leaky_relu(b: Rewriter, x: Value, alpha: Number) -> Value | None:
    """max(x, alpha * x) for alpha between 0 and 1."""
    if not 0 < alpha < 1:
        return None
    result: Value = b.leaky_relu(x, alpha=alpha)
    return result
