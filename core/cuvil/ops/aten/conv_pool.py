"""Convolutions, pools and resizing of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from string import ascii_lowercase
from typing import Any

import numpy as np

from cuvil.ir.dims import Dim, dim_max, known_ge
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import cast
from cuvil.ops.aten.registry import aten, aten_rows
from cuvil.ops.compose.helpers import static

Ints = Sequence[int]


def per_axis(values: Ints, count: int) -> list[int]:
    """A number for every spatial axis: one stands for all."""
    return list(islice(cycle(values), count))


@aten("convolution", "_convolution")
def convolution(
    cx: Cx,
    x: Value,
    weight: Value,
    bias: Value,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    *_: Value,
) -> Value:
    """Cross-correlation of x [N, C, ...] with weights, or its transpose."""
    n = cx.type(x).rank - 2
    pads = per_axis(padding, n) * 2
    operands = [x, weight] if bias is None else [x, weight, bias]
    window = {
        "strides": static(cx, per_axis(stride, n), "the strides of a convolution"),
        "dilations": static(cx, per_axis(dilation, n), "the dilations of a convolution"),
        "groups": static(cx, [groups], "the groups of a convolution")[0],
    }
    if 0 in cx.result.dims:
        return cx.b.broadcast(cx.b.scalar(0, x), dims=cx.result.dims)
    if not transposed:
        return cx.b.conv(*operands, pads=pads, **window)
    extra = per_axis(output_padding, n)
    return cx.b.conv_transpose(
        *operands, pads=pads, output_padding=extra if any(extra) else (), **window
    )


def _spatial(cx: Cx, x: Value, n: int) -> Value:
    """`x` with a batch axis: [C, ...] is one image."""
    return x if cx.type(x).rank == n + 2 else cx.b.reshape(x, dims=(1, *cx.dims(x)))


def _windows_of(
    cx: Cx, n: int, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints = (1,)
) -> dict[str, Any]:
    """What a pool over n spatial axes reads; without strides the windows lie side by side."""
    return {
        "kernel": static(cx, per_axis(kernel_size, n), "the windows of a pool"),
        "strides": static(cx, per_axis(stride or kernel_size, n), "the strides of a pool"),
        "dilations": static(cx, per_axis(dilation, n), "the dilations of a pool"),
        "pads": per_axis(padding, n) * 2,
        "out": cx.result.dims[-n:],
    }


def average_pool(n: int) -> Callable[..., Value]:
    """Means of windows over n spatial axes."""

    def compose(
        cx: Cx,
        x: Value,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        kind, image = cx.type(x).dtype.name, _spatial(cx, x, n)
        if not cx.type(x).dtype.is_float:
            image = cx.b.cast(image, to="f64")
        window = _windows_of(cx, n, kernel_size, stride, padding)
        if divisor_override is not None:
            image, window["pads"] = _covered(cx, image, window), [0] * (2 * n)
        found = cx.b.emit(
            "pool", [image], kind="avg", count_include_pad=count_include_pad, **window
        )
        if divisor_override is not None:
            factor = cx.b.scalar(math.prod(window["kernel"]) / divisor_override, found)
            found = cx.b.mul(found, factor)
        return cx.b.reshape(cast(cx, found, kind), dims=cx.result.dims)

    return compose


def _covered(cx: Cx, image: Value, window: dict[str, Any]) -> Value:
    """An image with zeros about it, so that every window lies inside."""
    low: list[Dim] = [0, 0]
    high: list[Dim] = [0, 0]
    for k, (size, step, out) in enumerate(
        zip(window["kernel"], window["strides"], window["out"], strict=True)
    ):
        low.append(window["pads"][k])
        reach = (out - 1) * step + size
        high.append(dim_max(reach - cx.dims(image)[2 + k] - window["pads"][k], 0))
    return cx.b.pad(image, cx.b.scalar(0, image), low=low, high=high)


aten_rows(average_pool, {"avg_pool1d": 1, "avg_pool2d": 2, "avg_pool3d": 3})


def max_pool(n: int) -> Callable[..., tuple[Value, Value]]:
    """The greatest element of every window, and where in the image it is."""

    def compose(
        cx: Cx,
        x: Value,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = (0,),
        dilation: Ints = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Value, Value]:
        image, dims = _spatial(cx, x, n), cx.result.dims
        window = _windows_of(cx, n, kernel_size, stride, padding, dilation)
        if not cx.used(1):
            found = cx.b.emit("pool", [image], kind="max", **window)
            return cx.b.reshape(found, dims=dims), None
        found, place = cx.b.pool_argmax(image, **window)
        place = _in_image(cx, image, place, n)
        return cx.b.reshape(found, dims=dims), cx.b.reshape(place, dims=dims)

    return compose


def _in_image(cx: Cx, image: Value, place: Value, n: int) -> Value:
    """Positions in the whole tensor as positions in the image of their channel."""
    size = cx.b.dims(dims=(1,), shape=(), dtype="i64")
    for extent in cx.dims(image)[-n:]:
        size = cx.b.mul(size, cx.b.dims(dims=(extent,), shape=(), dtype="i64"))
    return cx.b.mod(place, size)


aten_rows(max_pool, {"max_pool2d_with_indices": 2, "max_pool3d_with_indices": 3})


def adaptive_average(n: int) -> Callable[..., Value]:
    """Means of as many windows as asked for; they may be of several sizes."""

    def compose(cx: Cx, x: Value, output_size: Ints) -> Value:
        rank = cx.type(x).rank
        have, want = cx.dims(x)[-n:], cx.result.dims[-n:]
        if all(w == 1 for w in want):
            axes = tuple(range(rank - n, rank))
            return cx.b.reduce(x, kind="mean", axes=axes, keepdims=True)
        sizes = [_known(cx, d) for d in (*have, *want)]
        if all(w and h % w == 0 for h, w in zip(sizes[:n], sizes[n:], strict=True)):
            kernel = [h // w for h, w in zip(sizes[:n], sizes[n:], strict=True)]
            return average_pool(n)(cx, x, kernel)
        for k, (h, w) in enumerate(zip(sizes[:n], sizes[n:], strict=True)):
            x = _averaged(cx, x, rank - n + k, h, w)
        return x

    return compose


def _known(cx: Cx, extent: Dim) -> int:
    if not isinstance(extent, int):
        cx.fail(f"windows of an image of the symbolic extent {extent}")
    return extent


def windows(have: int, want: int) -> list[range]:
    """Which elements belong to each of `want` windows that cover an axis."""
    return [range(k * have // want, -(-(k + 1) * have // want)) for k in range(want)]


def _averaged(cx: Cx, x: Value, axis: int, have: int, want: int) -> Value:
    """Means of the windows of one axis, as a product with their weights."""
    weights = np.zeros((have, want))
    for k, window in enumerate(windows(have, want)):
        weights[list(window), k] = 1 / len(window)
    kind, rank = cx.type(x).dtype.name, cx.type(x).rank
    free = [c for c in ascii_lowercase if c not in "yz"][:rank]
    out = "".join("z" if k == axis else c for k, c in enumerate(free))
    own = "".join("y" if k == axis else c for k, c in enumerate(free))
    return cx.b.contract(x, cx.b.const(weights, kind), spec=f"{own},yz->{out}")


def adaptive_max(n: int) -> Callable[..., tuple[Value, Value]]:
    """The greatest elements of as many windows as asked for, and where in the image they are."""

    def compose(cx: Cx, x: Value, output_size: Ints) -> tuple[Value, Value]:
        dims, rank = cx.dims(x), cx.type(x).rank
        zero = cx.b.scalar(0, "i64")
        place = cx.b.broadcast(zero, dims=dims) if cx.used(1) else None
        size = 1  # of the axes behind
        for axis in reversed(range(rank - n, rank)):
            have, want = _known(cx, dims[axis]), _known(cx, cx.result.dims[axis])
            x, place = _greatest(cx, x, place, axis, windows(have, want), size)
            size *= have
        return x, place

    return compose


def _greatest(
    cx: Cx, x: Value, place: Value, axis: int, rows: Sequence[range], size: int
) -> tuple[Value, Value]:
    """The greatest element of every window of one axis; short ones repeat their last element.

    place: of every element of x in the axes behind, which have `size` elements; None where nobody
    asks for it.
    """
    b, longest = cx.b, max(map(len, rows), default=1)
    places = [[min(r.start + k, r.stop - 1) for k in range(longest)] for r in rows]
    index = b.const(np.array(places, np.int64).reshape(len(rows), longest))
    picked = b.gather(x, index, axis=axis)
    found = b.reduce(picked, kind="max", axes=(axis + 1,))
    if place is None:
        return found, None
    first = b.arg_reduce(picked, kind="max", axis=axis + 1, keepdims=True)
    own = b.reshape(index, dims=(*[1] * axis, *cx.dims(index), *[1] * (cx.type(x).rank - axis - 1)))
    whole = b.add(b.gather(place, index, axis=axis), b.mul(own, b.scalar(size, "i64")))
    place = b.gather_elements(whole, first, axis=axis + 1)
    return found, b.reshape(place, dims=cx.dims(found))


aten_rows(adaptive_max, {"adaptive_max_pool2d": 2, "adaptive_max_pool3d": 3})
aten_rows(
    adaptive_average,
    {"_adaptive_avg_pool2d": 2, "_adaptive_avg_pool3d": 3},
)


def nearest(n: int) -> Callable[..., Value]:
    """An image of another size, of its nearest pixels."""

    def compose(cx: Cx, x: Value, output_size: Ints, *scales: float | None) -> Value:
        return _resized(cx, x, n, "nearest", "asymmetric", scales, nearest_mode="floor")

    return compose


aten_rows(nearest, {f"upsample_nearest{n}d": n for n in (1, 2, 3)})


def linear(n: int) -> Callable[..., Value]:
    """An image of another size, by linear interpolation."""

    def compose(
        cx: Cx, x: Value, output_size: Ints, align_corners: bool, *scales: float | None
    ) -> Value:
        how = "align_corners" if align_corners else "half_pixel"
        return _resized(cx, x, n, "linear", how, () if align_corners else scales)

    return compose


aten_rows(linear, {"upsample_linear1d": 1, "upsample_bilinear2d": 2, "upsample_trilinear3d": 3})


@aten("upsample_bicubic2d")
def bicubic(
    cx: Cx, x: Value, output_size: Ints, align_corners: bool, *scales: float | None
) -> Value:
    """An image of another size, by cubic interpolation."""
    how = "align_corners" if align_corners else "half_pixel"
    return _resized(cx, x, 2, "cubic", how, () if align_corners else scales)


def _resized(
    cx: Cx,
    x: Value,
    n: int,
    mode: str,
    coordinate: str,
    scales: Sequence[float | None],
    nearest_mode: str = "round_prefer_floor",
) -> Value:
    """scales: of the spatial axes where torch was given some; else they follow from the sizes."""
    given = len(scales) == n and all(s is not None for s in scales)
    return cx.b.resize(
        x,
        mode=mode,
        coordinate=coordinate,
        nearest_mode=nearest_mode,
        axes=tuple(range(2, n + 2)),
        dims=cx.result.dims,
        scales=[float(s) for s in scales if s is not None] if given else (),
    )


@aten("constant_pad_nd")
def constant_pad(cx: Cx, x: Value, pad: Ints, value: Value = 0) -> Value:
    """Pads below and above the last axes, the last one first; negative ones crop."""
    low, high = _pads(cx, x, pad)
    return cx.b.pad(x, cx.b.scalar(value, x), low=low, high=high)


def _pads(cx: Cx, x: Value, pad: Ints) -> tuple[list[int], list[int]]:
    rank = cx.type(x).rank
    low, high = [0] * rank, [0] * rank
    for k in range(len(pad) // 2):
        low[rank - 1 - k], high[rank - 1 - k] = pad[2 * k], pad[2 * k + 1]
    return low, high


def own_pad(mode: str) -> Callable[..., Value]:
    """Pads made of the tensor's own elements."""

    def compose(cx: Cx, x: Value, padding: Ints) -> Value:
        low, high = _pads(cx, x, padding)
        zero = cx.b.scalar(0, x)
        if not all(known_ge(p, 0) for p in (*low, *high)):  # torch repeats what it crops
            if mode != "edge":
                cx.fail("pads by reflection that are or may be negative")
            return _shifted(cx, x, low)
        return cx.b.pad(x, zero, low=low, high=high, mode=mode)

    return compose


def _shifted(cx: Cx, x: Value, low: Ints) -> Value:
    """Elements from below the pads on; places outside take the nearest element."""
    b = cx.b
    for axis, (first, extent) in enumerate(zip(low, cx.result.dims, strict=True)):
        last = b.dims(dims=(cx.dims(x)[axis] - 1,), shape=(), dtype="i64")
        place = b.iota(dims=(extent,), axis=0)
        place = b.sub(place, b.dims(dims=(first,), shape=(), dtype="i64"))
        place = b.min(b.max(place, b.scalar(0, "i64")), last)
        if first or extent != cx.dims(x)[axis]:
            x = b.gather(x, place, axis=axis)
    return x


aten_rows(own_pad, {f"reflection_pad{n}d": "reflect" for n in (1, 2, 3)})
aten_rows(own_pad, {f"replication_pad{n}d": "edge" for n in (1, 2, 3)})
