"""Softplus from exponentials."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


@rewrites(
    lambda p, x: p.either(p.log(p.exp(x) + 1), p.log1p(p.exp(x))),
    example=[
        case(lambda b, x: b.log(b.add(b.exp(x), b.scalar(1, x))), x="[B, 9] f32"),
        case(lambda b, x: b.log1p(b.exp(x)), x="[B, 9] f32"),
    ],
    near_miss=case(lambda b, x: b.log1p(b.abs(x)), x="[B, 9] f32"),
    tolerance=1e-6,
)
def softplus(b: Rewriter, x: Value) -> Value:
    """log(1 + e**x), which then does not overflow."""
    result: Value = b.softplus(x)
    return result
