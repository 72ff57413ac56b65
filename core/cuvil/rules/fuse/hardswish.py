"""Hard swish."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


def _relu6(p, x):  # type: ignore[no-untyped-def]
    return p.min(p.either(p.max(x, 0), p.relu(x)), 6)


@rewrites(
    lambda p, x: p.product(x, _relu6(p, x + 3), 1 / 6),
    lambda p, x, alpha, beta: x * p.hardsigmoid(x, alpha=alpha, beta=beta),
    example=[
        case(
            lambda b, x: b.div(
                b.mul(x, b.min(b.relu(b.add(x, b.scalar(3, x))), b.scalar(6, x))), b.scalar(6, x)
            ),
            x="[B, 9] f32",
        ),
        case(lambda b, x: b.mul(b.hardsigmoid(x, alpha=1 / 6, beta=0.5), x), x="[B, 9] f32"),
    ],
    near_miss=[
        case(lambda b, x: b.mul(b.hardsigmoid(x, alpha=0.2, beta=0.5), x), x="[B, 9] f32"),
        case(lambda b, x: b.mul(b.hardsigmoid(x, alpha=1 / 6, beta=0.4), x), x="[B, 9] f32"),
    ],
    tolerance=1e-6,
)
def hardswish(b: Rewriter, x: Value, alpha: float = 1 / 6, beta: float = 0.5) -> Value | None:
    """x * max(0, min(1, x / 6 + 1 / 2))."""
    if abs(alpha - 1 / 6) > 1e-6 or beta != 0.5:
        return None
    result: Value = b.hardswish(x)
    return result
