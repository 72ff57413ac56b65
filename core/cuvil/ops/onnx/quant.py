"""Quantisation, and arithmetic on quantised tensors."""

from __future__ import annotations

from cuvil.ops.compose.helpers import axis_in, fitted, unsqueezed
from cuvil.ops.compose.matmul import matmul_of
from cuvil.ops.compose.norm import per_channel
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.conv import Ints, conv
from cuvil.ops.onnx.registry import onnx_op


def spread(cx: Cx, vector: Value, x: Value, axis: int, block: int) -> Value:
    """A scale or zero point so that it broadcasts against x: per tensor, axis or block."""
    rank, kind = cx.type(x).rank, cx.type(vector)
    if vector is None or kind.size == 1:
        return cx.b.reshape(vector, dims=()) if kind.rank else vector
    at = axis_in(cx, axis, rank)
    if kind.rank == 1 and not block:
        vector = fitted(cx, vector, (cx.dims(x)[at],))
        return unsqueezed(cx, vector, [k for k in range(rank) if k != at])
    if kind.rank != rank or not block:
        cx.bad(f"scales of rank {kind.rank} without a block_size")
    dims = list(kind.dims)
    repeated = [*dims[: at + 1], block, *dims[at + 1 :]]
    whole = cx.b.broadcast(unsqueezed(cx, vector, [at + 1]), dims=repeated)
    dims[at] = dims[at] * block
    whole = cx.b.reshape(whole, dims=dims)
    if dims[at] == cx.dims(x)[at]:
        return whole
    dims[at] = cx.dims(x)[at]  # the last block is not full
    return cx.b.slice(whole, starts=(0,) * rank, steps=(1,) * rank, dims=dims)


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(
    cx: Cx,
    x: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Value:
    """round(x / scale) + zero, held in the type of zero, `output_dtype` or uint8."""
    to = cx.dtype(output_dtype) if output_dtype else "u8"
    to = to if zero is None else cx.type(zero).dtype.name
    if precision not in (0, 1):
        cx.fail(f"precision={precision}: only float32 is supported")
    scale = _plain(cx, scale)
    operands = [x] + [spread(cx, v, x, axis, block_size) for v in (scale, zero) if v is not None]
    return cx.b.quantize_linear(*operands, to=to, saturate=saturate)


def _plain(cx: Cx, scale: Value) -> Value:
    """A scale of a narrow type as float32."""
    return cx.b.cast(scale, to="f32") if cx.type(scale).dtype.is_narrow else scale


@onnx_op("DequantizeLinear", since=10)
def dequantize_linear(
    cx: Cx,
    x: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """(x - zero) * scale, in the type of the scale or `output_dtype`."""
    scale = _plain(cx, scale)
    operands = [x] + [spread(cx, v, x, axis, block_size) for v in (scale, zero) if v is not None]
    value = cx.b.dequantize_linear(*operands)
    return cx.b.cast(value, to=cx.dtype(output_dtype)) if output_dtype else value


def shifted(cx: Cx, x: Value, zero: Value) -> Value:
    """x - zero in int32."""
    wide = cx.b.cast(x, to="i32")
    return wide if zero is None else cx.b.sub(wide, cx.b.cast(zero, to="i32"))


def by_row(cx: Cx, vector: Value) -> Value:
    """A parameter [M] of a left matrix as [M, 1]; others as they are."""
    if vector is None or cx.type(vector).rank != 1:
        return vector
    return cx.b.reshape(vector, dims=() if cx.dims(vector) == (1,) else (*cx.dims(vector), 1))


@onnx_op("MatMulInteger", since=10)
def matmul_integer(cx: Cx, a: Value, b: Value, a_zero: Value = None, b_zero: Value = None) -> Value:
    """The product of the shifted operands in int32."""
    return matmul_of(cx, shifted(cx, a, by_row(cx, a_zero)), shifted(cx, b, b_zero))


@onnx_op("QLinearMatMul", since=10)
def qlinear_matmul(
    cx: Cx,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Value:
    """The product in int32, scaled and rounded to the type of y_zero."""
    total = matmul_integer(cx, a, b, a_zero, b_zero)
    a_scale, y_scale = by_row(cx, a_scale), by_row(cx, y_scale)
    return _requantized(cx, total, cx.b.mul(a_scale, b_scale), y_scale, by_row(cx, y_zero))


def _requantized(cx: Cx, total: Value, scale: Value, y_scale: Value, y_zero: Value) -> Value:
    value = cx.b.mul(cx.b.cast(total, to="f32"), cx.b.cast(scale, to="f32"))
    operands = [value, cx.b.cast(y_scale, to="f32"), y_zero]
    return cx.b.quantize_linear(*operands, to=cx.type(y_zero).dtype.name)


@onnx_op("ConvInteger", since=10)
def conv_integer(
    cx: Cx,
    x: Value,
    w: Value,
    x_zero: Value = None,
    w_zero: Value = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """The convolution of the shifted operands in int32."""
    return conv(
        cx,
        shifted(cx, x, None if x_zero is None else _scalar(cx, x_zero)),
        shifted(cx, w, _by_filter(cx, w_zero, cx.type(x).rank)),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )


@onnx_op("QLinearConv", since=10)
def qlinear_conv(
    cx: Cx,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """The convolution in int32, scaled (perhaps by channel) and rounded to the type of y_zero."""
    rank = cx.type(x).rank
    total = conv(
        cx,
        shifted(cx, x, _scalar(cx, x_zero)),
        shifted(cx, w, _by_filter(cx, w_zero, rank)),
        bias,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    scale = cx.b.mul(_scalar(cx, x_scale), w_scale)
    if cx.type(scale).rank == 1:
        scale = per_channel(cx, scale, rank)
    return _requantized(cx, total, scale, _scalar(cx, y_scale), _scalar(cx, y_zero))


def _scalar(cx: Cx, x: Value) -> Value:
    return cx.b.reshape(x, dims=()) if cx.type(x).rank else x


def _by_filter(cx: Cx, zero: Value, rank: int) -> Value:
    """A zero point of the weights, per tensor or [O], against [O, C, ...]."""
    if zero is None or cx.type(zero).rank == 0:
        return zero
    return unsqueezed(cx, zero, range(1, rank)) if cx.dims(zero) != (1,) else _scalar(cx, zero)
