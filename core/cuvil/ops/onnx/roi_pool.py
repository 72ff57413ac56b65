"""The greatest elements of regions of images."""

from __future__ import annotations

import math

from cuvil.ir.dims import Dim
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("MaxRoiPool")
def max_roi_pool(
    cx: Cx, x: Value, regions: Value, *, pooled_shape: tuple[int, ...], spatial_scale: float = 1.0
) -> Value:
    """[R, C, *pooled_shape]: regions (image, x1, y1, x2, y2), both corners inside, in bins.

    Corners are rounded to pixels and bins outwards, so bins may share pixels; one that lies
    outside of the image is 0.
    """
    if len(pooled_shape) != 2 or cx.type(x).rank != 4 or cx.type(regions).rank != 2:
        cx.bad("takes images [N, C, H, W], regions [R, 5] and two sizes")
    cx.equal(cx.dims(regions)[1], 5)
    b, (_, channels, height, width) = cx.b, cx.dims(x)
    count, (rows, columns) = cx.dims(regions)[0], pooled_shape
    images = b.gather(x, b.cast(_column(cx, regions, 0), to="i64"), axis=0)
    least = b.scalar(-math.inf, x)
    corners = [_rounded(cx, _column(cx, regions, k), spatial_scale) for k in range(1, 5)]
    inside = _bins(cx, corners[0], corners[2], columns, width)
    parts = b.select(
        b.reshape(inside, dims=(count, 1, 1, columns, width)),
        b.reshape(images, dims=(count, channels, height, 1, width)),
        least,
    )
    lines = b.reduce(parts, kind="max", axes=(4,), keepdims=False)  # [R, C, H, columns]
    inside = _bins(cx, corners[1], corners[3], rows, height)
    parts = b.select(
        b.reshape(inside, dims=(count, 1, rows, height, 1)),
        b.reshape(lines, dims=(count, channels, 1, height, columns)),
        least,
    )
    best = b.reduce(parts, kind="max", axes=(3,), keepdims=False)
    return b.select(b.eq(best, least), b.scalar(0, x), best)


def _column(cx: Cx, regions: Value, k: int) -> Value:
    count = cx.dims(regions)[0]
    part = cx.b.slice(regions, starts=(0, k), steps=(1, 1), dims=(count, 1))
    return cx.b.reshape(part, dims=(count,))


def _rounded(cx: Cx, x: Value, scale: float) -> Value:
    """The nearest whole number of scaled coordinates, halves up."""
    scaled = cx.b.mul(x, cx.b.scalar(scale, x))
    return cx.b.floor(cx.b.add(scaled, cx.b.scalar(0.5, x)))


def _bins(cx: Cx, first: Value, last: Value, bins: int, extent: Dim) -> Value:
    """[R, bins, extent]: which positions of an axis are in each bin of first .. last."""
    b, kind, count = cx.b, cx.type(first).dtype.name, cx.dims(first)[0]
    one = b.scalar(1, kind)
    size = b.max(b.add(b.sub(last, first), one), one)
    step = b.reshape(b.div(size, b.scalar(bins, kind)), dims=(count, 1))
    start = b.reshape(first, dims=(count, 1))
    place = b.cast(b.iota(dims=(1, bins), axis=1), to=kind)
    low = b.add(b.floor(b.mul(place, step)), start)
    high = b.add(b.ceil(b.mul(b.add(place, one), step)), start)
    at = b.cast(b.iota(dims=(1, 1, extent), axis=2), to=kind)
    dims = (count, bins, 1)
    return b.and_(b.ge(at, b.reshape(low, dims=dims)), b.lt(at, b.reshape(high, dims=dims)))
