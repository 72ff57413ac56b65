"""The activation functions that recurrent operators name by strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cuvil.ops.onnx.context import Cx, Value

__all__ = ["Activation", "activations_for"]

Activation = Callable[[Cx, Value], Value]


def _affine(cx: Cx, x: Value, alpha: float, beta: float) -> Value:
    return cx.b.add(cx.b.mul(x, cx.b.scalar(alpha, x)), cx.b.scalar(beta, x))


def _scaled_tanh(cx: Cx, x: Value, alpha: float, beta: float) -> Value:
    return cx.b.mul(cx.b.tanh(cx.b.mul(x, cx.b.scalar(beta, x))), cx.b.scalar(alpha, x))


def _primitive(name: str) -> Callable[..., Value]:
    return lambda cx, x, **attrs: cx.b.emit(name, [x], **attrs)


# Name -> (function, defaults of its alpha and beta where it takes them).
_TABLE: dict[str, tuple[Callable[..., Any], dict[str, float]]] = {
    "affine": (_affine, {"alpha": 1.0, "beta": 0.0}),
    "elu": (_primitive("elu"), {"alpha": 1.0}),
    "hardsigmoid": (_primitive("hardsigmoid"), {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": (_primitive("leaky_relu"), {"alpha": 0.01}),
    "relu": (_primitive("relu"), {}),
    "scaledtanh": (_scaled_tanh, {"alpha": 1.0, "beta": 1.0}),
    "sigmoid": (_primitive("sigmoid"), {}),
    "softplus": (_primitive("softplus"), {}),
    "softsign": (_primitive("softsign"), {}),
    "tanh": (_primitive("tanh"), {}),
    "thresholdedrelu": (_primitive("thresholded_relu"), {"alpha": 1.0}),
}


def activations_for(
    cx: Cx,
    names: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
    count: int,
    directions: int,
) -> list[list[Activation]]:
    """`count` functions for each direction; alpha and beta go to those that take them, in order."""
    if len(names) < count * directions:
        cx.bad(f"{len(names)} activations, {count * directions} are needed")
    values = {"alpha": iter(alphas), "beta": iter(betas)}
    chosen = [_activation(cx, name, values) for name in names[: count * directions]]
    return [chosen[count * d : count * (d + 1)] for d in range(directions)]


def _activation(cx: Cx, name: str, values: dict[str, Iterator[float]]) -> Activation:
    if name.lower() not in _TABLE:
        cx.bad(f"unknown activation {name!r}; known: {', '.join(sorted(_TABLE))}")
    function, defaults = _TABLE[name.lower()]
    attrs = {key: next(values[key], default) for key, default in defaults.items()}
    return lambda cx, x: function(cx, x, **attrs)
