"""Regions and deformed windows of images, and determinants."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.ops.compose.norm import per_channel
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.conv import Ints, with_kernel
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.onnx.window import Window, window


@onnx_op("Det", since=11)
def determinant(cx: Cx, x: Value) -> Value:
    """The determinant of every matrix in the last two axes."""
    return cx.b.determinant(x)


@onnx_op("RoiAlign", since=10)
def roi_align_legacy(
    cx: Cx,
    x: Value,
    regions: Value,
    which: Value,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:
    """Before opset 16: no half pixel, and no region is smaller than one."""
    return roi_align(
        cx, x, regions, which, mode=mode, output_height=output_height, output_width=output_width,
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        coordinate_transformation_mode="output_half_pixel",
    )  # fmt: skip


@onnx_op("RoiAlign", since=16)
def roi_align(
    cx: Cx,
    x: Value,
    regions: Value,
    which: Value,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:
    """Every region of its image, resampled to one size."""
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        cx.bad(f"coordinate_transformation_mode={coordinate_transformation_mode!r}")
    half = coordinate_transformation_mode == "half_pixel"
    return cx.b.roi_align(
        x,
        regions,
        which,
        height=output_height,
        width=output_width,
        scale=spatial_scale,
        offset=0.5 if half else 0.0,
        least=0.0 if half else 1.0,
        samples=sampling_ratio,
        mode=mode,
    )


@onnx_op("DeformConv", since=19)
def deform_conv(
    cx: Cx,
    x: Value,
    w: Value,
    offset: Value,
    bias: Value = None,
    mask: Value = None,
    *,
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    offset_group: int = 1,
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """Conv on images whose every tap is moved by an offset of its own and read between pixels."""
    w, kernel = with_kernel(cx, w, kernel_shape)
    rank = cx.type(x).rank
    if rank != 4:
        cx.fail(f"{rank - 2} spatial axes are not supported, two are")
    shape = window(cx, cx.dims(x)[2:], kernel, strides=strides, dilations=dilations, pads=pads)
    taps = kernel[0] * kernel[1]
    batch, channels = cx.dims(x)[:2]
    out: list[Dim] = list(cx.dims(offset)[2:])
    moved = cx.b.reshape(offset, dims=(batch, offset_group, taps, 2, *out))
    grid = [_places(cx, moved, k, kernel, shape, out) for k in (0, 1)]
    images = cx.b.reshape(x, dims=(batch, offset_group, channels // offset_group, *cx.dims(x)[2:]))
    columns = _sampled(cx, images, grid)  # [N, groups, taps, oh, ow, C / groups]
    if mask is not None:
        columns = cx.b.mul(columns, cx.b.reshape(mask, dims=(batch, offset_group, taps, *out, 1)))
    columns = cx.b.transpose(columns, perm=(0, 1, 5, 2, 3, 4))
    columns = cx.b.reshape(columns, dims=(batch, group, channels // group, taps, *out))
    filters, own = cx.dims(w)[:2]
    weights = cx.b.reshape(w, dims=(group, filters // group, own, taps))
    y = cx.b.contract(weights, columns, spec="gock,ngckhw->ngohw")
    y = cx.b.reshape(y, dims=(batch, filters, *out))
    return y if bias is None else cx.b.add(y, per_channel(cx, bias, 4))


def _places(
    cx: Cx, offset: Value, axis: int, kernel: Sequence[int], shape: Window, out: Sequence[Dim]
) -> Value:
    """[N, groups, taps, oh, ow]: where each tap reads along an axis, in pixels."""
    b, taps = cx.b, kernel[0] * kernel[1]
    batch, groups = cx.dims(offset)[:2]
    starts = [0, 0, 0, axis, 0, 0]
    part = b.slice(offset, starts=starts, steps=[1] * 6, dims=(batch, groups, taps, 1, *out))
    part = b.reshape(part, dims=(batch, groups, taps, *out))
    stride, spread = shape.strides[axis], shape.dilations[axis]
    window_ = b.iota(dims=[out[axis] if k == axis else 1 for k in range(2)], axis=axis)
    tap = b.iota(dims=(taps, 1, 1), axis=0)
    tap = (
        b.div(tap, b.scalar(kernel[1], tap)) if axis == 0 else b.mod(tap, b.scalar(kernel[1], tap))
    )
    base = b.sub(
        b.mul(window_, b.scalar(stride, tap)),
        b.dims(dims=(shape.pads[axis],), shape=(), dtype="i64"),
    )
    whole = b.add(base, b.mul(tap, b.scalar(spread, tap)))
    return b.add(part, b.cast(whole, to=cx.type(offset).dtype.name))


def _sampled(cx: Cx, images: Value, grid: Sequence[Value]) -> Value:
    """Images [N, G, C, H, W] between their pixels at [N, G, ...]; zero outside: [N, G, ..., C]."""
    b = cx.b
    last = b.transpose(images, perm=(0, 1, 3, 4, 2))
    total = None
    lows = [b.floor(v) for v in grid]
    shares = [b.sub(v, low) for v, low in zip(grid, lows, strict=True)]
    one = b.scalar(1, grid[0])
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weight: Value = None
        hit: Value = None
        indices: list[Value] = []
        for k, (low, share, extent) in enumerate(
            zip(lows, shares, cx.dims(images)[3:], strict=True)
        ):
            at = b.cast(b.add(low, one) if corner[k] else low, to="i64")
            size = b.dims(dims=(extent,), shape=(), dtype="i64")
            inside = b.and_(b.ge(at, b.scalar(0, "i64")), b.lt(at, size))
            own = share if corner[k] else b.sub(one, share)
            hit = inside if hit is None else b.and_(hit, inside)
            weight = own if weight is None else b.mul(weight, own)
            at = b.max(b.min(at, b.sub(size, b.scalar(1, "i64"))), b.scalar(0, "i64"))
            indices.append(b.reshape(at, dims=(*cx.dims(at), 1)))
        value = b.gather_nd(last, b.concat(*indices, axis=5), batch_dims=2)
        weight = b.select(hit, weight, b.scalar(0, weight))
        part = b.mul(value, b.reshape(weight, dims=(*cx.dims(weight), 1)))
        total = part if total is None else b.add(total, part)
    return total
