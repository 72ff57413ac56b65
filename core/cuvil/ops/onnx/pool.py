"""Pooling over windows, and over whole images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuvil.ir.dims import Dim, product
from cuvil.ops.compose.helpers import index_list
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op, onnx_rows
from cuvil.ops.onnx.window import Window, window

Ints = tuple[int, ...]


def _pooled(cx: Cx, x: Value, kind: str, shape: Window, **more: Any) -> Value:
    return cx.b.emit("pool", [x], kind=kind, **vars(shape), **more)


@onnx_op("MaxPool")
def max_pool(
    cx: Cx,
    x: Value,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = (),
    pads: Ints = (),
    storage_order: int = 0,
    strides: Ints = (),
) -> Value | tuple[Value, ...]:
    """The greatest element of every window, and where it is, if that is read."""
    shape = window(
        cx,
        cx.dims(x)[2:],
        kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=pads,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
    )
    if any(cx.outputs[1:]):
        return cx.b.pool_argmax(x, **vars(shape), storage_order=storage_order)
    return _pooled(cx, x, "max", shape)


@onnx_op("AveragePool")
def average_pool(
    cx: Cx,
    x: Value,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """The mean of every window; the pads count only if asked, what is beyond them never."""
    shape = window(
        cx,
        cx.dims(x)[2:],
        kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=pads,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
    )
    return _pooled(cx, x, "avg", shape, count_include_pad=bool(count_include_pad))


def _lp_pool(cx: Cx, x: Value, kernel_shape: Ints, p: float, **options: Any) -> Value:
    shape = window(cx, cx.dims(x)[2:], kernel_shape, **options)
    return _pooled(cx, x, "lp", shape, p=float(p))


@onnx_op("LpPool")
def lp_pool_float(
    cx: Cx,
    x: Value,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    p: float = 2.0,
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """p is a float before opset 2."""
    return _lp_pool(cx, x, kernel_shape, p, auto_pad=auto_pad, pads=pads, strides=strides)


@onnx_op("LpPool", since=2)
def lp_pool(
    cx: Cx,
    x: Value,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = (),
    p: int = 2,
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """The p-norm of every window."""
    return _lp_pool(
        cx, x, kernel_shape, p, strides=strides, dilations=dilations, pads=pads,
        auto_pad=auto_pad, ceil_mode=ceil_mode,
    )  # fmt: skip


def global_pool(kind: str) -> Callable[..., Value]:
    """A reduction of all spatial axes."""

    def compose(cx: Cx, x: Value) -> Value:
        return cx.b.reduce(x, kind=kind, axes=tuple(range(2, cx.type(x).rank)), keepdims=True)

    return compose


onnx_rows(global_pool, {"GlobalAveragePool": "mean", "GlobalMaxPool": "max"})


@onnx_op("GlobalLpPool")
def global_lp_pool(cx: Cx, x: Value, *, p: float = 2.0) -> Value:
    """The p-norm of all spatial axes; p is a float before opset 2."""
    return _global_lp(cx, x, p)


@onnx_op("GlobalLpPool", since=2)
def global_lp_pool_int(cx: Cx, x: Value, *, p: int = 2) -> Value:
    """The p-norm of all spatial axes."""
    return _global_lp(cx, x, p)


def _global_lp(cx: Cx, x: Value, p: float) -> Value:
    axes = tuple(range(2, cx.type(x).rank))
    powers = cx.b.pow(cx.b.abs(x), cx.b.scalar(p, x))
    return cx.b.pow(
        cx.b.reduce(powers, kind="sum", axes=axes, keepdims=True), cx.b.scalar(1 / p, x)
    )


@onnx_op("MaxUnpool", since=9)
def max_unpool(
    cx: Cx,
    x: Value,
    indices: Value,
    output_shape: Value = None,
    *,
    kernel_shape: Ints,
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """Puts elements where `indices` (flat, in the shape the pool had) say; zeros elsewhere."""
    n = len(kernel_shape)
    strides, pads = strides or (1,) * n, pads or (0,) * 2 * n
    space = cx.dims(x)[2:]
    pooled = [
        (d - 1) * s + k - lo - hi
        for d, s, k, lo, hi in zip(space, strides, kernel_shape, pads[:n], pads[n:], strict=True)
    ]
    dims: list[Dim] = [*cx.dims(x)[:2], *pooled]
    zero = cx.b.scalar(0, x)
    flat = cx.b.broadcast(zero, dims=(product(dims),))
    count = product(cx.dims(x))
    result = cx.b.scatter_elements(
        flat, cx.b.reshape(indices, dims=(count,)), cx.b.reshape(x, dims=(count,)), axis=0
    )
    result = cx.b.reshape(result, dims=dims)
    if output_shape is None:
        return result
    wanted = index_list(cx, output_shape, "output_shape")
    return _grown(cx, result, wanted, zero)


def _grown(cx: Cx, x: Value, wanted: Sequence[int], zero: Value) -> Value:
    high = [w - d for w, d in zip(wanted, cx.dims(x), strict=True)]
    return cx.b.pad(x, zero, low=[0] * len(high), high=high)
