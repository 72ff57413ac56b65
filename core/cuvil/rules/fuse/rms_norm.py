"""RMS norm from its parts."""

from __future__ import annotations

from typing import Any

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import Number, rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case
from cuvil.rewrite.values import rank_of


def _normalized(p: Any, x: Any, axes: Any, eps: Any) -> Any:
    square = p.either(x * x, p.pow(x, 2))
    shifted = p.reduce(square, kind="mean", axes=axes, keepdims=True) + eps
    inverse = p.either(p.rsqrt(shifted), p.reciprocal(p.sqrt(shifted)), p.pow(shifted, -0.5))
    return p.either(x / p.sqrt(shifted), x * inverse)


def _parts(b: Any, x: Value, y: Value, axes: tuple[int, ...] = (1,)) -> Value:
    mean = b.reduce(b.mul(x, x), kind="mean", axes=axes, keepdims=True)
    result: Value = b.mul(y, b.rsqrt(b.add(mean, b.scalar(1e-6, x))))
    return result


@rewrites(
    _normalized,
    example=case(lambda b, x: _parts(b, x, x), x="[B, 9] f32"),
    near_miss=[
        case(lambda b, x: _parts(b, x, x), x="[B, 9, 3] f32"),
        case(lambda b, x, y: _parts(b, x, y), x="[B, 9] f32", y="[B, 9] f32"),
    ],
    tolerance=1e-5,
)
def rms_norm(b: Rewriter, x: Value, axes: Any, eps: Number) -> Value | None:
    """x / sqrt(mean of squares + eps) over the last axes."""
    rank = rank_of(x)
    if sorted(axes) != list(range(rank - len(axes), rank)):
        return None
    result: Value = b.rms_norm(x, axis=rank - len(axes), epsilon=eps)
    return result
