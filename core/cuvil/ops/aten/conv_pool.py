"""Convolutions, pools and resizing of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.registry import aten, aten_rows

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
    window = {"strides": per_axis(stride, n), "dilations": per_axis(dilation, n), "groups": groups}
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
        out = cx.result.dims[-n:]
        kernel, pads = per_axis(kernel_size, n), per_axis(padding, n)
        found = cx.b.emit(
            "pool",
            [_spatial(cx, x, n)],
            kind="avg",
            kernel=kernel,
            strides=per_axis(stride or kernel_size, n),
            dilations=[1] * n,
            pads=pads * 2,
            out=out,
            count_include_pad=count_include_pad or divisor_override is not None,
        )
        if divisor_override is not None:
            cx.fail("divisor_override")
        return cx.b.reshape(found, dims=cx.result.dims)

    return compose


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
        window = {
            "kernel": per_axis(kernel_size, n),
            "strides": per_axis(stride or kernel_size, n),
            "dilations": per_axis(dilation, n),
            "pads": per_axis(padding, n) * 2,
            "out": dims[-n:],
        }
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
    """Means of windows that divide the image evenly; torch takes the others apart."""

    def compose(cx: Cx, x: Value, output_size: Ints) -> Value:
        have, want = cx.dims(x)[-n:], cx.result.dims[-n:]
        axes = range(cx.type(x).rank - n, cx.type(x).rank)
        if all(w == 1 for w in want):
            return cx.b.reduce(x, kind="mean", axes=tuple(axes), keepdims=True)
        kernel = [_even(cx, h, w) for h, w in zip(have, want, strict=True)]
        return average_pool(n)(cx, x, kernel)

    return compose


def _even(cx: Cx, have: Value, want: Value) -> int:
    if not (isinstance(have, int) and isinstance(want, int)) or not want or have % want:
        cx.fail(f"windows of {have} elements for {want} results are not of one size")
    return have // want


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
        return cx.b.pad(x, cx.b.scalar(0, x), low=low, high=high, mode=mode)

    return compose


aten_rows(own_pad, {f"reflection_pad{n}d": "reflect" for n in (1, 2, 3)})
aten_rows(own_pad, {f"replication_pad{n}d": "edge" for n in (1, 2, 3)})
