"""Where an output position of a resize lies in the input, and how its neighbours weigh.

Formulas are those of the ONNX operator Resize-19. They are written once, over a `Namespace` of
scalar functions, and used by the numpy meaning and by the kernels, so both round alike. Positions
are f64; an extent ratio that no scale states is taken from the extents, with one rounding.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, ceil_div, dim_max
from cuvil.ops.scalar_expansions import Namespace

MODES = ("nearest", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


class Axis(NamedTuple):
    """How one axis is resized. scale 0: the ratio of the extents; start, end: the crop's ends."""

    axis: int
    scale: float
    start: float
    end: float


def axes_of(a: Attrs) -> list[Axis]:
    """The axes that the attributes list."""
    n = len(a.axes)
    scales = a.scales or (0.0,) * n
    roi = a.roi or (0.0,) * n + (1.0,) * n
    return [Axis(axis, scales[i], roi[i], roi[n + i]) for i, axis in enumerate(a.axes)]


def position(s: Namespace, coordinate: str, axis: Axis, x: Any, size: Any, out: Any) -> Any:
    """The position in the input of output position x; size and out are the extents."""
    if coordinate == "asymmetric":
        return _unscaled(s, axis, x, size, out)
    if coordinate == "align_corners":
        return s.div(s.mul(x, s.sub(size, 1)), s.max(s.sub(out, 1), 1))
    if coordinate == "tf_crop_and_resize":
        return _cropped(s, axis, x, size, out)
    centre = _unscaled(s, axis, s.add(x, 0.5), size, out)
    if coordinate == "tf_half_pixel_for_nn":
        return centre
    if coordinate == "half_pixel_symmetric" and axis.scale:
        lost = s.sub(1, s.div(out, s.mul(size, axis.scale)))
        centre = s.add(s.mul(s.mul(size, 0.5), lost), centre)
    half = s.sub(centre, 0.5)
    return s.select(s.gt(out, 1), half, 0) if coordinate == "pytorch_half_pixel" else half


def _unscaled(s: Namespace, axis: Axis, x: Any, size: Any, out: Any) -> Any:
    return s.div(x, axis.scale) if axis.scale else s.div(s.mul(x, size), out)


def _cropped(s: Namespace, axis: Axis, x: Any, size: Any, out: Any) -> Any:
    last = s.sub(size, 1)
    step = s.div(s.mul(last, axis.end - axis.start), s.max(s.sub(out, 1), 1))
    within = s.add(s.mul(last, axis.start), s.mul(x, step))
    return s.select(s.gt(out, 1), within, s.mul(last, 0.5 * (axis.start + axis.end)))


def nearest(s: Namespace, rule: str, at: Any) -> Any:
    """The position rounded by one of the four rules."""
    if rule == "round_prefer_floor":
        return s.ceil(s.sub(at, 0.5))
    if rule == "round_prefer_ceil":
        return s.floor(s.add(at, 0.5))
    return s.ceil(at) if rule == "ceil" else s.floor(at)


def taps(a: Attrs, axis: Axis, size: Dim, out: Dim) -> tuple[Dim, Dim]:
    """(first neighbour relative to the floor of the position, how many).

    Antialiasing widens the filter when shrinking, by what only a run knows where the extents are
    symbolic and no scale is given.
    """
    if a.mode == "nearest":
        return 0, 1
    radius = 1 if a.mode == "linear" else 2
    reach: Dim = radius
    if a.antialias and axis.scale:
        reach = math.ceil(radius * max(1.0, 1 / axis.scale))
    elif a.antialias:
        reach = dim_max(radius, ceil_div(radius * size, dim_max(out, 1)))
    return 1 - reach, 2 * reach


def weight(s: Namespace, a: Attrs, shrink: Any, distance: Any) -> Any:
    """The weight, not yet normalised, of a neighbour at this distance from the position.

    shrink: None, or the scale of at most 1 by which antialiasing stretches the filter.
    """
    d = s.abs(distance if shrink is None else s.mul(distance, shrink))
    if a.mode == "linear":
        return s.max(s.sub(1, d), 0)
    c = a.cubic_a
    near = s.add(s.mul(s.mul(s.sub(s.mul(d, c + 2), c + 3), d), d), 1)
    far = s.sub(s.mul(s.add(s.mul(s.sub(s.mul(d, c), 5 * c), d), 8 * c), d), 4 * c)
    return s.select(s.le(d, 1), near, s.select(s.lt(d, 2), far, 0))


def shrink_of(s: Namespace, a: Attrs, axis: Axis, size: Any, out: Any) -> Any:
    """The factor that stretches an antialiasing filter; None where nothing is stretched."""
    if not a.antialias or axis.scale >= 1:
        return None
    return axis.scale or s.min(1, s.div(out, s.max(size, 1)))
