"""Piecewise linear sigmoids."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import Number, rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case
from cuvil.rewrite.values import dtype_of


@rewrites(
    lambda p, x, alpha, beta: p.min(p.max(p.total(p.product(x, alpha), beta), 0), 1),
    lambda p, x, beta, six: p.product(
        p.min(p.either(p.max(p.total(x, beta), 0), p.relu(p.total(x, beta))), six), 1 / 6
    ),
    example=[
        case(
            lambda b, x: b.min(
                b.max(b.add(b.div(x, b.scalar(6, x)), b.scalar(0.5, x)), b.scalar(0, x)),
                b.scalar(1, x),
            ),
            x="[B, 9] f32",
        ),
        case(
            lambda b, x: b.div(
                b.min(b.max(b.add(x, b.scalar(3, x)), b.scalar(0, x)), b.scalar(6, x)),
                b.scalar(6, x),
            ),
            x="[B, 9] f32",
        ),
    ],
    near_miss=case(
        lambda b, x: b.min(
            b.max(b.add(b.div(x, b.scalar(6, x)), b.scalar(0.5, x)), b.scalar(0, x)),
            b.scalar(2, x),
        ),
        x="[B, 9] f32",
    ),
    tolerance=1e-6,
)
def hardsigmoid(
    b: Rewriter, x: Value, beta: Number, alpha: Number = 1 / 6, six: Number = 6
) -> Value | None:
    """alpha * x + beta cut to 0 and 1; (x + 3) cut to 0 and 6, divided by 6."""
    if six != 6 or not dtype_of(x).is_float:
        return None
    if alpha == 1 / 6 and beta == 3:
        beta = 0.5
    result: Value = b.hardsigmoid(x, alpha=alpha, beta=beta)
    return result
