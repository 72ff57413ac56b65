"""GELU by tanh."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case

_ROOT = 0.7978845608028654  # sqrt(2 / pi)


@rewrites(
    lambda p, x: p.product(
        x, 0.5, p.tanh(p.product(_ROOT, p.total(x, p.product(x, x, x, 0.044715)))) + 1
    ),
    lambda p, x: p.product(
        x, 0.5, p.tanh(p.product(x, _ROOT, p.total(p.product(x, x, 0.044715), 1))) + 1
    ),
    example=case(
        lambda b, x: b.mul(
            b.mul(b.scalar(0.5, x), x),
            b.add(
                b.scalar(1, x),
                b.tanh(
                    b.mul(
                        b.scalar(0.7978846, x),
                        b.add(x, b.mul(b.scalar(0.044715, x), b.mul(b.mul(x, x), x))),
                    )
                ),
            ),
        ),
        x="[B, 9] f32",
    ),
    near_miss=case(
        lambda b, x: b.mul(
            b.mul(b.scalar(0.5, x), x), b.add(b.scalar(1, x), b.tanh(b.mul(x, b.scalar(0.8, x))))
        ),
        x="[B, 9] f32",
    ),
    tolerance=1e-5,
)
def gelu_tanh(b: Rewriter, x: Value) -> Value:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x**3)))."""
    result: Value = b.gelu_tanh(x)
    return result
