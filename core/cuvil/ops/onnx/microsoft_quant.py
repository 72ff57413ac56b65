"""com.microsoft: arithmetic on quantised tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuvil.ir.build import constant_array, is_constant
from cuvil.ir.names import Operation
from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.onnx.activation import softmax, softmax_legacy
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.microsoft import MS
from cuvil.ops.onnx.pool import average_pool
from cuvil.ops.onnx.quant import by_row, dequantize_linear, matmul_integer, quantize_linear
from cuvil.ops.onnx.registry import onnx_op, onnx_rows

Ints = tuple[int, ...]


def _plain(cx: Cx, x: Value, scale: Value, zero: Value) -> Value:
    """x as floats; scale and zero point of the whole tensor."""
    return dequantize_linear(cx, x, scale, zero)


def _held(cx: Cx, y: Value, like: Value, scale: Value, zero: Value) -> Value:
    """Floats quantised in the type of `like` (or of the zero point)."""
    if zero is None:
        zero = cx.b.scalar(0, cx.type(like).dtype.name)
    return quantize_linear(cx, y, scale, zero)


def binary(primitive: str) -> Callable[..., Value]:
    """A binary operator of floats, on quantised operands and with a quantised result."""

    def compose(
        cx: Cx,
        a: Value,
        a_scale: Value,
        a_zero: Value = None,
        b: Value = None,
        b_scale: Value = None,
        b_zero: Value = None,
        y_scale: Value = None,
        y_zero: Value = None,
    ) -> Value:
        if None in (b, b_scale, y_scale):
            cx.bad("an operand or a scale is missing")
        y = cx.b.emit(primitive, [_plain(cx, a, a_scale, a_zero), _plain(cx, b, b_scale, b_zero)])
        return _held(cx, y, a, y_scale, y_zero)

    return compose


onnx_rows(binary, {"QLinearAdd": "add", "QLinearMul": "mul"}, domain=MS)


@onnx_op("QLinearSigmoid", domain=MS)
def qlinear_sigmoid(
    cx: Cx, x: Value, x_scale: Value, x_zero: Value, y_scale: Value, y_zero: Value = None
) -> Value:
    """Sigmoid between quantised tensors."""
    return _held(cx, cx.b.sigmoid(_plain(cx, x, x_scale, x_zero)), x, y_scale, y_zero)


@onnx_op("QLinearLeakyRelu", domain=MS)
def qlinear_leaky_relu(
    cx: Cx,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y_scale: Value,
    y_zero: Value = None,
    *,
    alpha: float = 0.01,
) -> Value:
    """LeakyRelu between quantised tensors."""
    y = cx.b.leaky_relu(_plain(cx, x, x_scale, x_zero), alpha=alpha)
    return _held(cx, y, x, y_scale, y_zero)


@onnx_op("QLinearSoftmax", domain=MS)
def qlinear_softmax(
    cx: Cx,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y_scale: Value,
    y_zero: Value,
    *,
    axis: int = -1,
    opset: int,
) -> Value:
    """Softmax between quantised tensors, over one axis, or as before opset 13."""
    over = softmax if opset >= 13 else softmax_legacy
    y = over("softmax")(cx, _plain(cx, x, x_scale, x_zero), axis=axis)
    return _held(cx, y, x, y_scale, y_zero)


def channels_first(cx: Cx, x: Value, last: int, body: Callable[[Value], Value]) -> Value:
    """`body` on [N, C, ...], for tensors with channels last if `last`."""
    rank = cx.type(x).rank
    if not last:
        return body(x)
    moved = body(cx.b.transpose(x, perm=(0, rank - 1, *range(1, rank - 1))))
    return cx.b.transpose(moved, perm=(0, *range(2, rank), 1))


@onnx_op("QLinearGlobalAveragePool", domain=MS)
def qlinear_global_average_pool(
    cx: Cx,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y_scale: Value,
    y_zero: Value,
    *,
    channels_last: int = 0,
) -> Value:
    """The mean of all spatial axes, between quantised tensors."""

    def body(plain: Value) -> Value:
        axes = tuple(range(2, cx.type(plain).rank))
        return cx.b.reduce(plain, kind="mean", axes=axes, keepdims=True)

    y = channels_first(cx, _plain(cx, x, x_scale, x_zero), channels_last, body)
    return _held(cx, y, x, y_scale, y_zero)


@onnx_op("QLinearAveragePool", domain=MS)
def qlinear_average_pool(
    cx: Cx,
    x: Value,
    x_scale: Value,
    x_zero: Value = None,
    y_scale: Value = None,
    y_zero: Value = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Ints,
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """AveragePool between quantised tensors."""
    options = {
        "auto_pad": auto_pad, "ceil_mode": ceil_mode, "count_include_pad": count_include_pad,
        "kernel_shape": kernel_shape, "pads": pads, "strides": strides,
    }  # fmt: skip
    plain = _plain(cx, x, x_scale, x_zero)
    y = channels_first(cx, plain, channels_last, lambda v: average_pool(cx, v, **options))
    return _held(cx, y, x, y_scale, y_zero)


@onnx_op("QLinearConcat", domain=MS)
def qlinear_concat(cx: Cx, y_scale: Value, y_zero: Value, *parts: Value, axis: int) -> Value:
    """(tensor, scale, zero point) triples one after the other, in one scale."""
    if not parts or len(parts) % 3:
        cx.bad(f"{len(parts)} operands after the scale, not triples")
    plain = [_plain(cx, *parts[k : k + 3]) for k in range(0, len(parts), 3)]
    at = axis_in(cx, axis, cx.type(plain[0]).rank)
    y = cx.b.concat(*plain, axis=at) if len(plain) > 1 else plain[0]
    return _held(cx, y, parts[0], y_scale, y_zero)


@onnx_op("QLinearWhere", domain=MS)
def qlinear_where(
    cx: Cx,
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    z_scale: Value,
    z_zero: Value,
) -> Value:
    """Where between quantised tensors."""
    chosen = cx.b.select(condition, _plain(cx, x, x_scale, x_zero), _plain(cx, y, y_scale, y_zero))
    return _held(cx, chosen, x, z_scale, z_zero)


@onnx_op("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(
    cx: Cx,
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero: Value = None,
    b_zero: Value = None,
    bias: Value = None,
) -> Value:
    """The integer product, scaled back to floats, plus a bias."""
    total = cx.b.cast(matmul_integer(cx, a, b, a_zero, b_zero), to="f32")
    y = cx.b.mul(total, cx.b.mul(by_row(cx, a_scale), b_scale))
    return y if bias is None else cx.b.add(y, bias)


@onnx_op("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(
    cx: Cx, a: Value, b: Value, b_scale: Value, b_zero: Value = None, bias: Value = None
) -> Value:
    """A product whose left operand is held in 8 bits by its own range."""
    held, scale, zero = dynamically_quantized(cx, a)
    return matmul_integer_to_float(cx, held, b, scale, b_scale, zero, b_zero, bias)


def dynamically_quantized(cx: Cx, x: Value) -> tuple[Value, Value, Value]:
    """(x in u8, scale, zero point), as DynamicQuantizeLinear does."""
    b, axes = cx.b, tuple(range(cx.type(x).rank))
    zero = b.scalar(0, x)
    high = b.max(b.reduce(x, kind="max", axes=axes, keepdims=False), zero)
    low = b.min(b.reduce(x, kind="min", axes=axes, keepdims=False), zero)
    scale = b.div(b.sub(high, low), b.scalar(255, x))
    flat = b.eq(scale, zero)
    safe = b.select(flat, b.scalar(1, x), scale)
    point = b.round(b.div(b.neg(low), safe))
    point = b.cast(b.min(b.max(point, zero), b.scalar(255, x)), to="u8")
    return b.quantize_linear(x, safe, point, to="u8"), safe, point


@onnx_op("QGemm", domain=MS)
def qgemm(
    cx: Cx,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    c: Value = None,
    y_scale: Value = None,
    y_zero: Value = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's own names
    transB: int = 0,  # noqa: N803
) -> Value:
    """Gemm of integers; floats, or quantised where there is a scale for that."""
    left = cx.b.transpose(a, perm=(1, 0)) if transA else a
    right = cx.b.transpose(b, perm=(1, 0)) if transB else b
    total = matmul_integer(cx, left, right, a_zero, b_zero)
    total = total if c is None else cx.b.add(total, c)
    scale = cx.b.mul(a_scale, b_scale)
    y = cx.b.mul(cx.b.cast(total, to="f32"), cx.b.mul(scale, cx.b.scalar(alpha, scale)))
    return y if y_scale is None else _held(cx, y, a, y_scale, y_zero)


@onnx_op("QuantizeLinear", domain=MS)
def quantize(cx: Cx, x: Value, scale: Value, zero: Value = None, *, axis: int = 1) -> Value:
    """As ONNX's."""
    return quantize_linear(cx, x, scale, zero, axis=axis)


@onnx_op("DequantizeLinear", domain=MS)
def dequantize(cx: Cx, x: Value, scale: Value, zero: Value = None, *, axis: int = 1) -> Value:
    """As ONNX's."""
    return dequantize_linear(cx, x, scale, zero, axis=axis)


@onnx_op("MatMulNBits", domain=MS)
def matmul_n_bits(
    cx: Cx,
    a: Value,
    b: Value,
    scales: Value,
    zeros: Value = None,
    order: Value = None,
    bias: Value = None,
    *,
    K: int,  # noqa: N803 - ONNX's own names
    N: int,  # noqa: N803
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
) -> Value:
    """A product by weights of 2, 4 or 8 bits in blocks, packed low bits first: [N, blocks, bytes].

    The weights are constants and become floats at compile time.
    """
    if bits not in (2, 4, 8) or order is not None:
        cx.fail(f"{bits} bits, or a permutation of columns, is not supported")
    if zeros is not None and cx.type(zeros).dtype.name != "u8":
        cx.fail("zero points that are not packed are not supported")
    packed, steps = (constant_of(cx, v, "the weights") for v in (b, scales))
    blocks = -(-K // block_size)
    values = unpacked(packed.reshape(N, blocks, -1), bits)[..., :block_size].astype(np.float32)
    if zeros is None:
        points = np.full((N, blocks), 1 << (bits - 1), np.float32)
    else:
        rows = constant_of(cx, zeros, "the zero points").reshape(N, -1)
        points = unpacked(rows, bits)[:, :blocks].astype(np.float32)
    steps = steps.reshape(N, blocks, 1).astype(np.float32)
    weights = ((values - points[..., None]) * steps).reshape(N, -1)[:, :K]
    rank = cx.type(a).rank
    rows_ = "abcdefgh"[: rank - 1]
    kind = cx.type(a).dtype.name
    y = cx.b.contract(a, cx.b.const(weights, kind), spec=f"{rows_}k,nk->{rows_}n")
    return y if bias is None else cx.b.add(y, bias)


def constant_of(cx: Cx, value: Value, what: str) -> np.ndarray:
    """The elements of a constant; UnsupportedError for what is none."""
    if not is_constant(value):
        cx.fail(f"{what} must be constants")
    assert isinstance(value.owner, Operation)
    return constant_array(value.owner, cx.b.pool)


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of so many bits from bytes, the low ones first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (data[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*data.shape[:-1], -1)
