"""com.microsoft: operators that ONNX has, too, in spellings of ONNX Runtime's own."""

from __future__ import annotations

from cuvil.ops.compose.helpers import axis_in, index_list, unsqueezed
from cuvil.ops.onnx.constant import range_
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.indexing import gather_nd
from cuvil.ops.onnx.microsoft import MS, fused_matmul
from cuvil.ops.onnx.microsoft_quant import channels_first
from cuvil.ops.onnx.movement import pad, trilu
from cuvil.ops.onnx.norm import layer_norm
from cuvil.ops.onnx.pool import max_pool
from cuvil.ops.onnx.quant import qlinear_conv, shifted
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.sampling import grid_sample
from cuvil.ops.onnx.selection import unique

Ints = tuple[int, ...]

onnx_op("LayerNormalization")(layer_norm)  # in ONNX's domain before ONNX had it
onnx_op("Trilu", domain=MS)(trilu)
onnx_op("GridSample", domain=MS)(grid_sample)
onnx_op("GatherND", domain=MS)(gather_nd)


@onnx_op("TransposeMatMul", domain=MS)
def transpose_matmul(
    cx: Cx,
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's own names
    transB: int = 0,  # noqa: N803
) -> Value:
    """The older name of FusedMatMul."""
    return fused_matmul(cx, a, b, alpha=alpha, transA=transA, transB=transB)


@onnx_op("Pad", domain=MS)
def pad_tensor(
    cx: Cx, x: Value, pads: Value, value: Value = None, *, mode: str = "constant"
) -> Value:
    """As ONNX's; pads may be a matrix of one row."""
    rows = cx.type(pads).size
    return pad(cx, x, cx.b.reshape(pads, dims=(rows,)), value, mode=mode)


@onnx_op("Range", domain=MS)
def range_of(cx: Cx, start: Value, limit: Value, delta: Value = None) -> Value:
    """As ONNX's, by steps of 1 unless told."""
    return range_(cx, start, limit, cx.b.scalar(1, start) if delta is None else delta)


@onnx_op("ExpandDims", domain=MS)
def expand_dims(cx: Cx, x: Value, axis: Value) -> Value:
    """One extent of 1 put in at an axis of the result."""
    at = axis_in(cx, index_list(cx, axis, "axis")[0], cx.type(x).rank + 1)
    return unsqueezed(cx, x, [at])


@onnx_op("Unique", domain=MS)
def unique_in_order(cx: Cx, x: Value) -> tuple[Value, ...]:
    """(distinct elements in the order of their first, which of them each element is, counts)."""
    values, _, inverse, counts = unique(cx, x, sorted=0)
    return values, inverse, counts


@onnx_op("CDist", domain=MS)
def distances(cx: Cx, a: Value, b: Value, *, metric: str = "sqeuclidean") -> Value:
    """[M, N]: distances, or their squares, between the rows of two matrices."""
    if metric not in ("euclidean", "sqeuclidean"):
        cx.bad(f"metric {metric!r}")
    (rows, width), (others, _) = cx.dims(a), cx.dims(b)
    apart = cx.b.sub(
        cx.b.reshape(a, dims=(rows, 1, width)), cx.b.reshape(b, dims=(1, others, width))
    )
    total = cx.b.reduce(cx.b.mul(apart, apart), kind="sum", axes=(2,), keepdims=False)
    return cx.b.sqrt(total) if metric == "euclidean" else total


@onnx_op("NhwcMaxPool", domain=MS)
def max_pool_channels_last(
    cx: Cx,
    x: Value,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = (),
    kernel_shape: Ints,
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """MaxPool of [N, ..., C]."""

    def body(v: Value) -> Value:
        return max_pool(
            cx, v, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
            dilations=dilations, pads=pads, strides=strides,
        )  # fmt: skip

    return channels_first(cx, x, 1, body)


@onnx_op("QLinearConv", domain=MS)
def qlinear_conv_either_way(
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
    channels_last: int = 0,
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """As ONNX's; images may be [N, ..., C], filters never are."""

    def body(v: Value) -> Value:
        return qlinear_conv(
            cx, v, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, auto_pad=auto_pad,
            dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads, strides=strides,
        )  # fmt: skip

    return channels_first(cx, x, channels_last, body)


@onnx_op("MulInteger", domain=MS)
def mul_integer(
    cx: Cx, a: Value, a_zero: Value = None, b: Value = None, b_zero: Value = None
) -> Value:
    """The product of the shifted operands in int32."""
    if b is None:
        cx.bad("an operand is missing")
    return cx.b.mul(shifted(cx, a, a_zero), shifted(cx, b, b_zero))
