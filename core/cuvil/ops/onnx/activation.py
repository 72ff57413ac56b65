"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuvil.ir.dims import Dim, product
from cuvil.ops.compose.helpers import axis_in, narrow, unsqueezed
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.math import unary, unary_legacy
from cuvil.ops.onnx.registry import onnx_op, onnx_rows

onnx_rows(unary_legacy, {"Relu": "relu"})
onnx_rows(
    unary,
    {"HardSwish": "hardswish", "Mish": "mish", "Softplus": "softplus", "Softsign": "softsign"},
)

_SELU = {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}


def scaled(primitive: str) -> Callable[..., Value]:
    """An activation with one factor `alpha`, whose default is the primitive's own."""

    def compose(
        cx: Cx, x: Value, *, alpha: float | None = None, consumed_inputs: tuple[int, ...] = ()
    ) -> Value:
        return cx.b.emit(primitive, [x], **({} if alpha is None else {"alpha": alpha}))

    return compose


onnx_rows(
    scaled,
    {
        "Celu": "celu",
        "Elu": "elu",
        "LeakyRelu": "leaky_relu",
        "ThresholdedRelu": "thresholded_relu",
    },
)


@onnx_op("Selu")
def selu_legacy(
    cx: Cx,
    x: Value,
    *,
    alpha: float = 1.6732,
    gamma: float = 1.0507,
    consumed_inputs: tuple[int, ...] = (),
) -> Value:
    """Shorter defaults, before opset 6."""
    return cx.b.selu(x, alpha=alpha, gamma=gamma)


@onnx_op("Selu", since=6)
def selu(
    cx: Cx, x: Value, *, alpha: float = _SELU["alpha"], gamma: float = _SELU["gamma"]
) -> Value:
    """gamma * elu(x, alpha)."""
    return cx.b.selu(x, alpha=alpha, gamma=gamma)


@onnx_op("HardSigmoid")
def hard_sigmoid(
    cx: Cx,
    x: Value,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
    consumed_inputs: tuple[int, ...] = (),
) -> Value:
    """max(0, min(1, alpha * x + beta))."""
    return cx.b.hardsigmoid(x, alpha=alpha, beta=beta)


@onnx_op("Gelu", since=20)
def gelu(cx: Cx, x: Value, *, approximate: str = "none") -> Value:
    """By erf, or its approximation by tanh."""
    if approximate not in ("none", "tanh"):
        cx.bad(f"approximate={approximate!r} is neither 'none' nor 'tanh'")
    return cx.b.gelu_tanh(x) if approximate == "tanh" else cx.b.gelu(x)


@onnx_op("Swish", since=24)
def swish(cx: Cx, x: Value, *, alpha: float = 1.0) -> Value:
    """x * sigmoid(alpha * x)."""
    if alpha == 1.0:
        return cx.b.silu(x)
    return cx.b.mul(x, cx.b.sigmoid(cx.b.mul(x, cx.b.scalar(alpha, x))))


@onnx_op("PRelu", since=7)
def prelu(cx: Cx, x: Value, slope: Value) -> Value:
    """x below zero is scaled by its slope."""
    return cx.b.select(cx.b.lt(x, cx.b.scalar(0, x)), cx.b.mul(x, slope), x)


@onnx_op("PRelu")
def prelu_legacy(cx: Cx, x: Value, slope: Value, *, consumed_inputs: tuple[int, ...] = ()) -> Value:
    """Before opset 7 a vector of slopes belongs to the channels."""
    rank = cx.type(x).rank
    if cx.type(slope).rank == 1 and rank > 2:
        slope = unsqueezed(cx, slope, range(1, rank - 1))
    return prelu(cx, x, slope)


@onnx_op("Shrink", since=9)
def shrink(cx: Cx, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """Moves elements beyond +-lambd towards zero by bias, and zeroes the others."""
    if cx.type(x).dtype.is_float:
        return cx.b.shrink(x, bias=bias, lambd=lambd)
    return narrow(cx, cx.b.shrink(cx.b.cast(x, to="f64"), bias=bias, lambd=lambd), x)


def flattened(cx: Cx, x: Value, axis: int, body: Callable[[Value], Value]) -> Value:
    """`body` on [rows, columns], where columns are the axes from `axis` on; then x's shape."""
    dims = cx.dims(x)
    flat = cx.b.reshape(x, dims=two_dims(dims, axis))
    return cx.b.reshape(body(flat), dims=dims)


def two_dims(dims: Sequence[Dim], axis: int) -> tuple[Dim, Dim]:
    """The extents of a matrix that holds the axes before `axis` in rows."""
    return (product(dims[:axis]), product(dims[axis:]))


def softmax_legacy(primitive: str) -> Callable[..., Value]:
    """Before opset 13: over all axes from `axis` on, by default 1."""

    def compose(cx: Cx, x: Value, *, axis: int = 1) -> Value:
        rank = cx.type(x).rank
        at = rank if axis == rank else axis_in(cx, axis, rank)
        return flattened(cx, x, at, lambda flat: cx.b.emit(primitive, [flat], axis=1))

    return compose


def softmax(primitive: str) -> Callable[..., Value]:
    """Over one axis, by default the last."""

    def compose(cx: Cx, x: Value, *, axis: int = -1) -> Value:
        return cx.b.emit(primitive, [x], axis=axis_in(cx, axis, cx.type(x).rank))

    return compose


_SOFTMAX = {"Softmax": "softmax", "LogSoftmax": "log_softmax"}
onnx_rows(softmax_legacy, _SOFTMAX)
onnx_rows(softmax, _SOFTMAX, since=13)


def _one_hot_max(cx: Cx, x: Value, axis: int) -> Value:
    best = cx.b.arg_reduce(x, kind="max", axis=axis, keepdims=True)
    place = cx.b.iota(dims=[d if k == axis else 1 for k, d in enumerate(cx.dims(x))], axis=axis)
    return cx.b.cast(cx.b.eq(place, best), to=cx.type(x).dtype.name)


@onnx_op("Hardmax")
def hardmax_legacy(cx: Cx, x: Value, *, axis: int = 1) -> Value:
    """Before opset 13: over all axes from `axis` on."""
    at = axis_in(cx, axis, cx.type(x).rank)
    return flattened(cx, x, at, lambda flat: _one_hot_max(cx, flat, 1))


@onnx_op("Hardmax", since=13)
def hardmax(cx: Cx, x: Value, *, axis: int = -1) -> Value:
    """1 at the first greatest element of the axis, else 0."""
    return _one_hot_max(cx, x, axis_in(cx, axis, cx.type(x).rank))
