"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value
from cuvil.ops.aten.registry import aten, aten_rows


def plain(primitive: str) -> Callable[..., Value]:
    """An activation that is one primitive."""

    def compose(cx: Cx, x: Value) -> Value:
        return cx.b.emit(primitive, [x])

    return compose


aten_rows(plain, {"silu": "silu", "mish": "mish", "hardswish": "hardswish"})


@aten("hardsigmoid")
def hardsigmoid(cx: Cx, x: Value) -> Value:
    """max(0, min(1, x / 6 + 1 / 2))."""
    return cx.b.hardsigmoid(x, alpha=1 / 6, beta=0.5)


@aten("gelu")
def gelu(cx: Cx, x: Value, approximate: str = "none") -> Value:
    """By erf, or its approximation by tanh."""
    return cx.b.gelu_tanh(x) if approximate == "tanh" else cx.b.gelu(x)


@aten("leaky_relu")
def leaky_relu(cx: Cx, x: Value, negative_slope: Value = 0.01) -> Value:
    """x, or negative_slope * x below zero."""
    return cx.b.leaky_relu(x, alpha=float(negative_slope))


@aten("rrelu_with_noise_functional")
def rrelu(
    cx: Cx,
    x: Value,
    noise: Value,
    lower: Value = 1 / 8,
    upper: Value = 1 / 3,
    training: bool = False,
    generator: Value = None,
) -> tuple[Value, Value]:
    """A leaky ReLU of the mean slope; in training the slopes are random."""
    if training:
        cx.fail("random slopes")
    return leaky_relu(cx, x, (float(lower) + float(upper)) / 2), noise


@aten("elu")
def elu(cx: Cx, x: Value, alpha: Value = 1, scale: Value = 1, input_scale: Value = 1) -> Value:
    """scale * x, or scale * alpha * (exp(x * input_scale) - 1) below zero."""
    b = cx.b
    if scale == 1 and input_scale == 1:
        return b.elu(x, alpha=float(alpha))
    inner = x if input_scale == 1 else b.mul(x, b.scalar(float(input_scale), x))
    below = b.mul(b.expm1(inner), b.scalar(float(alpha) * float(scale), x))
    above = b.mul(x, b.scalar(float(scale), x))
    return b.select(b.gt(x, b.scalar(0, x)), above, below)


@aten("softplus")
def softplus(cx: Cx, x: Value, beta: Value = 1, threshold: Value = 20) -> Value:
    """log(1 + exp(beta * x)) / beta, and x itself beyond the threshold."""
    b = cx.b
    if beta == 1 and threshold == 20:
        return b.softplus(x)
    factor = b.scalar(float(beta), x)
    scaled = b.mul(x, factor)
    smooth = b.div(b.softplus(scaled), factor)
    return b.select(b.gt(scaled, b.scalar(float(threshold), x)), x, smooth)


@aten("hardtanh")
def hardtanh(cx: Cx, x: Value, min_val: Value = -1, max_val: Value = 1) -> Value:
    """min(max(x, min_val), max_val)."""
    kind = cx.type(x).dtype.name
    low, high = as_value(cx, min_val, kind), as_value(cx, max_val, kind)
    return cx.b.min(cx.b.max(x, low), high)


@aten("_prelu_kernel")
def prelu(cx: Cx, x: Value, slope: Value) -> Value:
    """x below zero is scaled by its slope."""
    return cx.b.select(cx.b.gt(x, cx.b.scalar(0, x)), x, cx.b.mul(x, slope))
