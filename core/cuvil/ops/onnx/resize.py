"""Resampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from cuvil.ir.dims import Dim, SymDim, floor_scaled
from cuvil.ir.dims_scaled import MANTISSA
from cuvil.ops.compose.helpers import axes_in, static
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import extents
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]

FAR = 1 << 20  # an axis that is resized is hardly longer


def known_floats(cx: Cx, value: Value, what: str) -> list[float]:
    """The elements of a float tensor that the compiler must know as numbers."""
    array = cx.known(value)
    if array is None:
        cx.known_ints(value, what)  # says on which inputs the value depends
    if array is None or array.dtype == object:
        cx.fail(f"{what} depends on a symbolic dimension")
    return [float(x) for x in array.ravel()]


def scaled(dim: Dim, scale: float) -> Dim:
    """floor(dim * scale); the product is rounded to f32 first, as engines do.

    Of a symbolic extent a quotient of integers says that where no product of up to `FAR` needs
    rounding, 3*n // 2 for 1.5: then more can be proved of extents.
    """
    if isinstance(dim, SymDim) and 0 < scale < FAR:
        p, q = float(np.float32(scale)).as_integer_ratio()
        if FAR * p // (p & -p) < 1 << MANTISSA:
            return dim * p // q
    return floor_scaled(dim, scale)


@onnx_op("Resize", since=10)
def resize_scales(cx: Cx, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    """By scales only, and asymmetric, before opset 11; where an axis shrinks, nearest is above."""
    factors = known_floats(cx, scales, "scales")
    less = [min(f, 1.0) for f in factors]
    if mode != "nearest" or min(less, default=1.0) == 1:
        return upsampled(cx, x, factors, mode)
    x = upsampled(cx, x, less, mode, "ceil")
    return upsampled(cx, x, [max(f, 1.0) for f in factors], mode)


@onnx_op("Upsample", since=9)
def upsample(cx: Cx, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    """Scales as an input."""
    return upsampled(cx, x, known_floats(cx, scales, "scales"), mode)


@onnx_op("Upsample", since=7)
def upsample_attribute(
    cx: Cx, x: Value, *, scales: tuple[float, ...], mode: str = "nearest"
) -> Value:
    """Scales as an attribute, before opset 9."""
    return upsampled(cx, x, list(scales), mode)


@onnx_op("Upsample")
def upsample_image(
    cx: Cx, x: Value, *, height_scale: float, width_scale: float, mode: str = "nearest"
) -> Value:
    """Images only, before opset 7."""
    return upsampled(cx, x, [1.0, 1.0, height_scale, width_scale], mode)


def upsampled(
    cx: Cx, x: Value, scales: Sequence[float], mode: str, nearest: str = "floor"
) -> Value:
    """Asymmetric coordinates; nearest takes the pixel below (or above: "ceil")."""
    dims = cx.dims(x)
    if len(scales) != len(dims) or min(scales) <= 0:
        cx.bad(f"scales {list(scales)} do not fit rank {len(dims)}")
    axes = [k for k, s in enumerate(scales) if s != 1]
    if not axes:
        return x
    return cx.b.resize(
        x,
        mode="linear" if mode in ("linear", "bilinear") else mode,
        coordinate="asymmetric",
        nearest_mode=nearest,
        axes=axes,
        dims=[scaled(d, s) for d, s in zip(dims, scales, strict=True)],
        scales=[scales[k] for k in axes],
    )


@onnx_op("Resize", since=11)
def resize(
    cx: Cx,
    x: Value,
    roi: Value = None,
    scales: Value = None,
    sizes: Value = None,
    *,
    antialias: int = 0,
    axes: Ints | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Value:
    """To sizes, or by scales, on `axes`, by default all."""
    dims, rank = list(cx.dims(x)), cx.type(x).rank
    at = axes_in(cx, range(rank) if axes is None else axes, rank)
    if sizes is not None and cx.dims(sizes) != (0,):
        if keep_aspect_ratio_policy != "stretch":  # the ratios have to be compared
            wanted = cx.known_ints(sizes, "sizes")
        else:
            wanted = extents(cx, sizes, "sizes", count=len(at))
        factors, wanted = _by_sizes(cx, [dims[k] for k in at], wanted, keep_aspect_ratio_policy)
    elif scales is not None:
        factors = known_floats(cx, scales, "scales")
        wanted = [scaled(dims[k], s) for k, s in zip(at, factors, strict=True)]
    else:
        cx.bad("needs scales or sizes")
    corners: list[float] = []
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
        corners = known_floats(cx, roi, "roi")
    for axis, size in zip(at, wanted, strict=True):
        dims[axis] = size
    return cx.b.resize(
        x,
        mode=mode,
        coordinate=coordinate_transformation_mode,
        nearest_mode=nearest_mode,
        axes=at,
        dims=dims,
        scales=factors,
        roi=corners,
        cubic_a=cubic_coeff_a,
        exclude_outside=bool(exclude_outside),
        antialias=bool(antialias),
        extrapolation=extrapolation_value,
    )


def _by_sizes(
    cx: Cx, have: list[Dim], wanted: list[Dim], policy: str
) -> tuple[list[float], list[Dim]]:
    """(scales, where 0 is the ratio of the extents; output extents)."""
    if len(have) != len(wanted):
        cx.bad(f"{len(wanted)} sizes for {len(have)} axes")
    if policy == "stretch":
        return [0.0] * len(have), wanted
    if policy not in ("not_larger", "not_smaller"):
        cx.bad(f"keep_aspect_ratio_policy={policy!r}")
    old, new = static(cx, have, "a resized extent"), static(cx, wanted, "sizes")
    choose = min if policy == "not_larger" else max
    scale = choose(Fraction(n, o) for n, o in zip(new, old, strict=True))
    return [float(scale)] * len(old), [math.floor(scale * o + Fraction(1, 2)) for o in old]
