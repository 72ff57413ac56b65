"""The exact GELU."""

from __future__ import annotations

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case

_ROOT_HALF = 0.7071067811865476


@rewrites(
    lambda p, x: p.product(x, 0.5, p.erf(x * _ROOT_HALF) + 1),
    lambda p, x: p.product(x, p.erf(x * _ROOT_HALF) * 0.5 + 0.5),
    lambda p, x: p.total(p.product(x, 0.5, p.erf(x * _ROOT_HALF)), x * 0.5),
    example=[
        case(  # torch
            lambda b, x: b.mul(
                b.mul(x, b.scalar(0.5, x)),
                b.add(b.erf(b.div(x, b.scalar(1.4142135, x))), b.scalar(1, x)),
            ),
            x="[B, 9] f32",
        ),
        case(  # older torch, TensorFlow
            lambda b, x: b.mul(
                b.mul(x, b.add(b.scalar(1, x), b.erf(b.mul(x, b.scalar(0.70710677, x))))),
                b.scalar(0.5, x),
            ),
            x="[B, 9] f32",
        ),
        case(
            lambda b, x: b.mul(
                x,
                b.mul(
                    b.add(b.erf(b.div(x, b.scalar(1.4142135, x))), b.scalar(1, x)), b.scalar(0.5, x)
                ),
            ),
            x="[B, 9] f16",
        ),
    ],
    near_miss=[
        case(
            lambda b, x, y: b.mul(
                b.mul(y, b.scalar(0.5, x)),
                b.add(b.erf(b.div(x, b.scalar(1.4142135, x))), b.scalar(1, x)),
            ),
            x="[B, 9] f32",
            y="[B, 9] f32",
        ),
        case(
            lambda b, x: b.mul(
                b.mul(x, b.scalar(0.5, x)),
                b.add(b.erf(b.div(x, b.scalar(1.5, x))), b.scalar(1, x)),
            ),
            x="[B, 9] f32",
        ),
    ],
    tolerance=1e-5,
)
def gelu(b: Rewriter, x: Value) -> Value:
    """x / 2 * (1 + erf(x / sqrt 2)), however exporters spell it."""
    result: Value = b.gelu(x)
    return result
