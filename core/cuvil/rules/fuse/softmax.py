"""Softmax from its parts."""

from __future__ import annotations

from typing import Any

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


def _exponentials(p: Any, x: Any, axes: Any) -> Any:
    greatest = p.reduce(x, kind="max", axes=axes, keepdims=True)
    return p.either(p.exp(x - greatest), p.exp(x))


def _total(p: Any, e: Any, axes: Any) -> Any:
    return p.reduce(e, kind="sum", axes=axes, keepdims=True)


def _parts(b: Any, x: Value, shifted: bool, axes: tuple[int, ...] = (1,)) -> Value:
    greatest = b.reduce(x, kind="max", axes=axes, keepdims=True)
    e = b.exp(b.sub(x, greatest) if shifted else x)
    result: Value = b.div(e, b.reduce(e, kind="sum", axes=axes, keepdims=True))
    return result


@rewrites(
    lambda p, x, axes: p.either(
        (e := _exponentials(p, x, axes)) / _total(p, e, axes),
        e * p.reciprocal(_total(p, e, axes)),
    ),
    example=[
        case(lambda b, x: _parts(b, x, True), x="[B, 9, 2] f32"),
        case(lambda b, x: _parts(b, x, False), x="[B, 9, 2] f32"),
    ],
    near_miss=[
        case(lambda b, x: _parts(b, x, True, (0, 1)), x="[B, 9, 2] f32"),
        case(
            lambda b, x: b.div(b.exp(x), b.reduce(x, kind="sum", axes=(1,), keepdims=True)),
            x="[B, 9] f32",
        ),
    ],
    tolerance=1e-5,
)
def softmax(b: Rewriter, x: Value, axes: tuple[int, ...]) -> Value | None:
    """e**(x - max) / sum of e**(x - max) over one axis; the maximum may have been left out."""
    if len(axes) != 1:
        return None
    result: Value = b.softmax(x, axis=axes[0])
    return result
