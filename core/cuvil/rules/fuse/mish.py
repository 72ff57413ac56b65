"""Mish."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


@rewrites(
    lambda p, x: x * p.tanh(p.softplus(x)),
    example=case(lambda b, x: b.mul(x, b.tanh(b.softplus(x))), x="[B, 9] f32"),
    near_miss=case(lambda b, x, y: b.mul(y, b.tanh(b.softplus(x))), x="[B, 9] f32", y="[B, 9] f32"),
    tolerance=1e-6,
)
def mish(b: Rewriter, x: Value) -> Value:
    """x * tanh(softplus(x))."""
    result: Value = b.mish(x)
    return result
