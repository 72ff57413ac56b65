"""Layer norm from its parts."""

from __future__ import annotations

from typing import Any

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import Number, rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case
from cuvil.rewrite.values import rank_of


def _mean(p: Any, x: Any, axes: Any) -> Any:
    return p.reduce(x, kind="mean", axes=axes, keepdims=True)


def _normalized(p: Any, x: Any, axes: Any, eps: Any) -> Any:
    d = x - _mean(p, x, axes)
    shifted = _mean(p, p.either(d * d, p.pow(d, 2)), axes) + eps
    inverse = p.either(p.rsqrt(shifted), p.reciprocal(p.sqrt(shifted)), p.pow(shifted, -0.5))
    return p.either(d / p.sqrt(shifted), d * inverse)


def _parts(b: Any, x: Value, axes: tuple[int, ...], root: bool = True) -> Value:
    d = b.sub(x, _mean(b, x, axes))
    shifted = b.add(_mean(b, b.mul(d, d), axes), b.scalar(1e-5, x))
    result: Value = b.div(d, b.sqrt(shifted)) if root else b.mul(b.rsqrt(shifted), d)
    return result


@rewrites(
    _normalized,
    example=[
        case(lambda b, x: _parts(b, x, (2,)), x="[B, 3, 9] f32"),
        case(lambda b, x: _parts(b, x, (1, 2), root=False), x="[B, 3, 9] f32"),
    ],
    near_miss=[
        case(lambda b, x: _parts(b, x, (1,)), x="[B, 3, 9] f32"),
        case(
            lambda b, x: b.div(x, b.sqrt(b.add(_mean(b, b.mul(x, x), (1,)), b.scalar(1e-5, x)))),
            x="[B, 9] f32",
        ),
    ],
    tolerance=1e-5,
)
def layer_norm(b: Rewriter, x: Value, axes: Any, eps: Number) -> Value | None:
    """(x - mean) / sqrt(variance + eps) over the last axes."""
    rank = rank_of(x)
    if sorted(axes) != list(range(rank - len(axes), rank)):
        return None
    result: Value = b.layer_norm(x, axis=rank - len(axes), epsilon=eps)
    return result
