"""Resampling along axes: nearest, linear and cubic, by every rule of ONNX Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, literal
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops import resize_rules as rules
from cuvil.ops import scalars
from cuvil.ops.lowering import (
    ElementCx,
    axis_in,
    both,
    clamp,
    guarded,
    inside,
)
from cuvil.ops.resize_rules import Axis
from cuvil.ops.scalar_expansions import Namespace

UNROLL = 16  # at most so many neighbours on one axis are written out,
UNROLL_ALL = 64  # and so many of an element on all axes


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    for what, value, known in (
        ("mode", a.mode, rules.MODES),
        ("coordinate", a.coordinate, rules.COORDINATES),
        ("nearest_mode", a.nearest_mode, rules.NEAREST),
    ):
        if value not in known:
            raise ValueError(f"resize: unknown {what} '{value}'; known: {', '.join(known)}")
    if t[0].dtype.kind == "bool" and a.mode != "nearest":
        raise ValueError("resize: bools have no means")
    n = len(a.axes)
    if len(set(a.axes)) != n or len(a.scales or a.axes) != n or len(a.roi) not in (0, 2 * n):
        raise ValueError(f"resize: scales and roi do not fit axes {list(a.axes)}")
    if len(a.dims) != t[0].rank:
        raise ValueError(f"resize: {len(a.dims)} extents for rank {t[0].rank}")
    for axis in rules.axes_of(a):
        size = t[0].dims[axis_in(axis.axis, t[0].rank, "resize")]
        if size == 0 or not axis.scale >= 0:
            raise ValueError(f"resize: axis {axis.axis} of {size} cannot be scaled by {axis.scale}")
    return [t[0].with_dims(a.dims)]


def moved(a: Attrs, dims: Sequence[Dim]) -> list[Axis]:
    """The axes on which something happens."""
    return [
        x
        for x in rules.axes_of(a)
        if a.dims[x.axis] != dims[x.axis]
        or x.scale not in (0.0, 1.0)
        or a.coordinate == "tf_crop_and_resize"
    ]


# -- numpy ---------------------------------------------------------------------------------------


class _Arrays(Namespace):
    """Scalar functions on f64 arrays."""

    def apply(self, name: str, *args: Any, **attrs: Any) -> Any:
        arrays = [x if isinstance(x, np.ndarray) else np.float64(x) for x in args]
        return scalars.evaluate(name, *arrays, **attrs)


def _axis_table(a: Attrs, axis: Axis, size: int, out: int) -> tuple[Any, Any, Any]:
    """(neighbours [out, taps], their weights, which positions are inside) of one axis."""
    s, x = _Arrays(), np.arange(out, dtype=np.float64)
    at = rules.position(s, a.coordinate, axis, x, np.float64(size), np.float64(out))
    within = (at >= 0) & (at <= size - 1)
    if a.mode == "nearest":
        index = rules.nearest(s, a.nearest_mode, at)[:, None]
        return np.clip(index, 0, size - 1).astype(np.int64), np.ones_like(index), within
    first, count = rules.taps(a, axis, size, out)
    index = np.floor(at)[:, None] + first + np.arange(literal(count))
    shrink = rules.shrink_of(s, a, axis, np.float64(size), np.float64(out))
    weights = rules.weight(s, a, shrink, at[:, None] - index)
    if a.exclude_outside:
        weights = np.where((index >= 0) & (index < size), weights, 0)
    if a.exclude_outside or a.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1).astype(np.int64), weights, within


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    data, inside_all = x[0], np.ones((), bool)
    if a.mode != "nearest":
        data = data.astype(np.float64)
    for axis in moved(a, x[0].shape):
        k = axis.axis
        index, weights, within = _axis_table(a, axis, x[0].shape[k], a.dims[k])
        shape = [-1 if i == k else 1 for i in range(data.ndim)]
        parts = [np.take(data, index[:, j], k) for j in range(index.shape[1])]
        if a.mode == "nearest":
            data = parts[0]
        else:
            pairs = zip(parts, weights.T, strict=True)
            data = sum(part * w.reshape(shape) for part, w in pairs)
        inside_all = inside_all & within.reshape(shape)
    if a.coordinate == "tf_crop_and_resize":
        data = np.where(inside_all, data, a.extrapolation)
    return [scalars.evaluate("cast", np.asarray(data), to=from_numpy(x[0].dtype).name)]


# -- kernels -------------------------------------------------------------------------------------


class _Elements(Namespace):
    """Scalar functions on elements of a kernel; numbers take the type of the elements."""

    def __init__(self, b: NestBuilder, dtype: str) -> None:
        self.b = b
        self.dtype = dtype

    def apply(self, name: str, *args: Any, **attrs: Any) -> Any:
        b = self.b
        values = [x if isinstance(x, Value) else b.const(x, self.dtype) for x in args]
        result = "bool" if scalars.SCALARS[name].result == "bool" else self.dtype
        return b.scalar(name, *values, result=result, **attrs)

    def number(self, index: Index) -> Value:
        """An index as an element."""
        if isinstance(index, int):
            return self.b.const(index, self.dtype)
        return self.b.cast(self.b.from_index(index, "i64"), self.dtype)


class _Neighbours:
    """The neighbours of an output position on one axis."""

    def __init__(self, cx: ElementCx, axis: Axis, at: Index) -> None:
        self.cx, self.axis, a = cx, axis, cx.attrs
        self.size, out = cx.operand_types[0].dims[axis.axis], a.dims[axis.axis]
        self.whole = _whole_ratio(a, axis, self.size, out)
        self.at_output = at
        self.within: Value | None = None
        if self.whole:
            return
        b, s = cx.b, _Elements(cx.b, "f64")
        size, limit = (s.number(b.dim(d)) for d in (self.size, out))
        place = rules.position(s, a.coordinate, axis, s.number(at), size, limit)
        if a.coordinate == "tf_crop_and_resize":
            low, high = s.le(0, place), s.le(place, s.sub(size, 1))
            self.within = b.scalar("and", low, high)
        if a.mode == "nearest":
            place = rules.nearest(s, a.nearest_mode, place)
        floor = s.floor(place)
        self.base = b.to_index(b.cast(floor, "i64"))
        self.ratio = b.cast(s.sub(place, floor), _weight_type(cx))
        self.first, self.count = (b.dim(d) for d in rules.taps(a, axis, self.size, out))
        self.shrink = rules.shrink_of(s, a, axis, size, limit)
        if isinstance(self.shrink, Value):
            self.shrink = b.cast(self.shrink, _weight_type(cx))
        self.total = self._total()

    def index(self, tap: Index) -> Index:
        """The neighbour's position in the input, held inside it."""
        b = self.cx.b
        if self.whole:
            return b.div(self.at_output, self.whole)
        return clamp(b, self._free_index(tap), self.size)

    def _free_index(self, tap: Index) -> Index:
        b = self.cx.b
        return b.add(self.base, b.add(self.first, tap))

    def weight(self, tap: Index) -> Value:
        """The neighbour's weight; the weights of all neighbours add up to 1."""
        value = self._raw_weight(tap)
        return value if self.total is None else self.cx.b.scalar("div", value, self.total)

    def _raw_weight(self, tap: Index) -> Value:
        b, s = self.cx.b, _Elements(self.cx.b, _weight_type(self.cx))
        distance = s.sub(self.ratio, s.number(b.add(self.first, tap)))
        value: Value = rules.weight(s, self.cx.attrs, self.shrink, distance)
        if not self.cx.attrs.exclude_outside:
            return value
        found = inside(b, self._free_index(tap), self.size)
        return guarded(b, found, value, b.const(0, _weight_type(self.cx)))

    def _total(self) -> Value | None:
        a, b = self.cx.attrs, self.cx.b
        if a.mode == "nearest" or not (a.exclude_outside or a.antialias):
            return None
        zero = b.const(0, _weight_type(self.cx))
        if not isinstance(self.count, int) or self.count > UNROLL:
            with b.loop(0, self.count, [zero], kind="reduce") as loop:
                loop.yield_(b.scalar("add", loop.args[0], self._raw_weight(loop.iv)))
            return loop.results[0]
        total = zero
        for tap in range(self.count):
            total = b.scalar("add", total, self._raw_weight(tap))
        return total


def _weight_type(cx: ElementCx) -> str:
    return "f64" if cx.result_type.dtype.name in ("f64", "i64", "u64", "i32", "u32") else "f32"


def _whole_ratio(a: Attrs, axis: Axis, size: Dim, out: Dim) -> int:
    """k where element i of a nearest resize is input element i // k; else 0."""
    ratio = axis.scale
    if not ratio and isinstance(size, int) and isinstance(out, int):
        ratio = out / size
    if a.mode != "nearest" or ratio < 1 or ratio != int(ratio) or out != size * int(ratio):
        return 0
    rounded = a.nearest_mode.startswith("round")
    centred = a.coordinate in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    if (centred and rounded) or (a.coordinate == "asymmetric" and a.nearest_mode == "floor"):
        return int(ratio)
    return 0


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b, a, dtype = cx.b, cx.attrs, cx.result_type.dtype.name
    near = [_Neighbours(cx, x, index[x.axis]) for x in moved(a, cx.operand_types[0].dims)]
    if a.mode == "nearest":
        value = cx.operand(0, _source(index, near, [n.index(0) for n in near]))
    else:
        value = b.cast(_mixed(cx, index, near), dtype)
    if a.coordinate != "tf_crop_and_resize":
        return value
    found = both(b, *(n.within for n in near))
    return guarded(b, found, value, b.cast(b.const(a.extrapolation, "f64"), dtype))


def _source(
    index: Sequence[Index], near: Sequence[_Neighbours], places: Sequence[Index]
) -> list[Index]:
    source = list(index)
    for n, place in zip(near, places, strict=True):
        source[n.axis.axis] = place
    return source


def _looped(near: Sequence[_Neighbours]) -> int:
    """How many of the outer axes need a loop over their neighbours; the others are written out."""
    points = 1
    for outer in range(len(near), 0, -1):
        count = near[outer - 1].count
        if not isinstance(count, int) or count > UNROLL or points * count > UNROLL_ALL:
            return outer
        points *= count
    return 0


def _mixed(cx: ElementCx, index: Sequence[Index], near: list[_Neighbours]) -> Value:
    """The weighted sum of the neighbours on all axes, outer axes first."""
    b, kind, looped = cx.b, _weight_type(cx), _looped(near)
    written = [
        [(n.index(t), n.weight(t)) for t in range(n.count)]
        for n in near[looped:]
        if isinstance(n.count, int)  # or it would be looped
    ]

    def along(k: int, places: tuple[Index, ...]) -> Value:
        if k == len(near):
            return b.cast(cx.operand(0, _source(index, near, places)), kind)
        if k < looped:
            with b.loop(0, near[k].count, [b.const(0, kind)], kind="reduce") as loop:
                part = along(k + 1, (*places, near[k].index(loop.iv)))
                part = b.scalar("mul", part, near[k].weight(loop.iv))
                loop.yield_(b.scalar("add", loop.args[0], part))
            return loop.results[0]
        parts = [b.scalar("mul", along(k + 1, (*places, at)), w) for at, w in written[k - looped]]
        total = parts[0]
        for part in parts[1:]:
            total = b.scalar("add", total, part)
        return total

    return along(0, ())


RESIZE = Primitive(
    name="resize",  # dims: the result's; scales: by listed axis, 0 (or none) is result over operand
    infer=_infer,
    evaluate=_evaluate,
    attrs={
        "mode": Attr("str", "nearest"),
        "coordinate": Attr("str", "half_pixel"),
        "nearest_mode": Attr("str", "round_prefer_floor"),
        "axes": Attr("ints"),
        "dims": Attr("dims"),
        "scales": Attr("floats", ()),
        "roi": Attr("floats", ()),  # starts of the listed axes, then ends; for the crop
        "cubic_a": Attr("float", -0.75),
        "exclude_outside": Attr("bool", False),
        "antialias": Attr("bool", False),
        "extrapolation": Attr("float", 0.0),
    },
    element=_element,
    tags=frozenset({"window"}),
    tolerance=1e-5,
    computes=True,
).register()
