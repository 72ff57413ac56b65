"""Normalisation by moments."""

from __future__ import annotations

from collections.abc import Callable

from cuvil.ops.compose.context import Cx, Value
from cuvil.ops.compose.helpers import narrow, unsqueezed, wide

__all__ = ["normalised", "per_channel", "statistics"]


def per_channel(cx: Cx, vector: Value, rank: int) -> Value:
    """A vector [C] so that it broadcasts over [N, C, ...]."""
    return unsqueezed(cx, vector, range(1, rank - 1)) if rank > 1 else vector


def normalised(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    var: Value,
    epsilon: float,
    spread: Callable[[Value], Value],
) -> Value:
    """x times a factor plus a shift, which `spread` makes broadcast against x."""
    b = cx.b
    scale, bias, mean, var = (wide(cx, v) for v in (scale, bias, mean, var))
    deviation = b.sqrt(b.add(var, b.scalar(epsilon, var)))
    factor = b.div(narrow(cx, scale, deviation), deviation)
    shift = b.sub(narrow(cx, bias, factor), b.mul(narrow(cx, mean, factor), factor))
    value = narrow(cx, x, factor)
    value = b.mul(value, spread(factor))
    return narrow(cx, b.add(value, spread(shift)), x)


def statistics(cx: Cx, x: Value, axis: int, epsilon: float) -> tuple[Value, Value]:
    """(mean, 1 / standard deviation) over the axes from `axis` on."""
    b, axes = cx.b, tuple(range(axis, cx.type(x).rank))
    mean = b.reduce(x, kind="mean", axes=axes, keepdims=True)
    centred = b.sub(x, mean)
    var = b.reduce(b.mul(centred, centred), kind="mean", axes=axes, keepdims=True)
    return mean, b.reciprocal(b.sqrt(b.add(var, b.scalar(epsilon, var))))
