"""Pooling: the greatest element, the mean or the p-norm of every window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, known_ge
from cuvil.ir.dtypes import DType, from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.conv import (
    channel_axis,
    check_image,
    from_first,
    image_dims,
    image_index,
    spatial_axes,
    to_first,
)
from cuvil.ops.lowering import (
    ElementCx,
    both,
    clamp,
    element_dtype,
    guarded,
    inside,
    loops,
    lowest,
    wide,
)

KINDS = ("max", "avg", "lp")
UNROLL = 16  # windows of at most so many elements are written out
WINDOW = {
    "kernel": Attr("ints"),
    "strides": Attr("ints"),
    "dilations": Attr("ints"),
    "pads": Attr("dims"),  # below every spatial axis, then above every one
    "out": Attr("dims"),  # spatial extents of the result: the caller knows the rounding rule
    "layout": Attr("str", "channels_first"),
}


def check_window(what: str, t: Sequence[TensorType], a: Attrs) -> TensorType:
    n = check_image(what, t, a)
    if len(a.kernel) != n or len(a.out) != n or min(a.kernel) < 1:
        raise ValueError(f"{what}: kernel and out need {n} positive numbers")
    if t[0].dtype.kind == "bool":
        raise ValueError(f"{what} does not take bool")
    channels = t[0].dims[channel_axis(a.layout, t[0].rank)]
    return t[0].with_dims(image_dims(a.layout, t[0].dims[0], channels, a.out))


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    result = check_window("pool", t, a)
    if a.kind not in KINDS or (a.kind != "max" and not t[0].dtype.is_float):
        raise ValueError(f"pool '{a.kind}' does not take {t[0].dtype.name}")
    return [result]


def taps(data: Any, a: Attrs) -> Iterator[tuple[tuple[int, ...], list[Any], Any]]:
    """For every window position: itself, the input positions by axis, which of them are inside."""
    sizes = data.shape[2:]
    for tap in product(*map(range, a.kernel)):
        at = [
            np.arange(o) * s - p + t * d
            for o, s, p, t, d in zip(a.out, a.strides, a.pads, tap, a.dilations, strict=False)
        ]
        masks = [(p >= 0) & (p < n) for p, n in zip(at, sizes, strict=True)]
        yield tap, at, _outer(np.logical_and, masks)


def _outer(ufunc: Any, parts: Sequence[Any]) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = ufunc.outer(result, part)
    return result


def pick(data: Any, at: Sequence[Any], found: Any, fill: Any) -> Any:
    """Elements [N, C, out...] at these positions, `fill` outside the image."""
    safe = [np.clip(p, 0, n - 1) for p, n in zip(at, data.shape[2:], strict=True)]
    picked = data[(slice(None), slice(None), *np.ix_(*safe))]
    return np.where(found, picked, np.asarray(fill, data.dtype))


def _counts(a: Attrs, sizes: Sequence[int]) -> Any:
    """How many window elements lie inside the image, or inside its pads where those count."""
    axes = []
    for i, size in enumerate(sizes):
        low, high = (a.pads[i], a.pads[len(sizes) + i]) if a.count_include_pad else (0, 0)
        starts = np.arange(a.out[i]) * a.strides[i] - a.pads[i]
        at = starts[:, None] + np.arange(a.kernel[i]) * a.dilations[i]
        axes.append(((at >= -low) & (at < size + high)).sum(1))
    return np.maximum(_outer(np.multiply, axes), 1)


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    data = to_first(wide(x[0]), a.layout)
    result = np.full((*data.shape[:2], *a.out), _start(a.kind, from_numpy(data.dtype)), data.dtype)
    for _, at, found in taps(data, a):
        if a.kind == "max":
            result = np.maximum(result, pick(data, at, found, lowest(from_numpy(data.dtype))))
        else:
            value = pick(data, at, found, 0)
            result = result + (abs(value) ** a.p if a.kind == "lp" else value)
    if a.kind == "avg":
        result = result / _counts(a, data.shape[2:]).astype(data.dtype)
    elif a.kind == "lp":
        result = result ** (1 / a.p)
    return [from_first(result, a.layout).astype(x[0].dtype)]


def _start(kind: str, dtype: DType) -> float | int | bool:
    return lowest(dtype) if kind == "max" else 0


def window_index(
    cx: ElementCx, index: Sequence[Index], tap: Sequence[Index]
) -> tuple[Value | None, list[Index]]:
    """(whether a window element is inside the image, its index in the operand)."""
    b, a, dims = cx.b, cx.attrs, cx.operand_types[0].dims
    axes = spatial_axes(a.layout, len(dims))
    conditions: list[Value | None] = []
    safe: list[Index] = []
    for i, axis in enumerate(axes):
        start = b.sub(b.mul(index[axis], a.strides[i]), b.dim(a.pads[i]))
        at = b.add(start, b.mul(tap[i], a.dilations[i]))
        fits = _fits(a, i, dims[axis])
        conditions.append(None if fits else inside(b, at, dims[axis]))
        safe.append(at if fits else clamp(b, at, dims[axis]))
    channel = index[channel_axis(a.layout, len(dims))]
    return both(b, *conditions), image_index(a.layout, index[0], channel, safe)


def _fits(a: Attrs, i: int, extent: Dim) -> bool:
    """Whether every window is known to lie inside the image on this spatial axis."""
    last = (a.out[i] - 1) * a.strides[i] + a.dilations[i] * (a.kernel[i] - 1)
    return bool(a.pads[i] == 0 and known_ge(extent, last + 1))


def over_window(
    cx: ElementCx, start: Sequence[Value], step: Callable[..., Sequence[Value]]
) -> tuple[Value, ...]:
    """Carries values over a window: step(tap, *carried); small windows are written out."""
    kernel = cx.attrs.kernel
    if int(np.prod(kernel)) > UNROLL:
        return loops(cx.b, kernel, start, step)
    carried = tuple(start)
    for tap in product(*map(range, kernel)):
        carried = tuple(step(tap, *carried))
    return carried


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b, a, dtype = cx.b, cx.attrs, cx.result_type.dtype.compute
    empty = b.const(_start(a.kind, dtype), dtype.name)

    def step(tap: Sequence[Index], total: Value) -> Sequence[Value]:
        found, place = window_index(cx, index, tap)
        value = guarded(b, found, b.cast(cx.operand(0, place), dtype.name), empty)
        if a.kind == "lp":
            value = _power(cx, b.scalar("abs", value), a.p)
        return [b.scalar("max" if a.kind == "max" else "add", total, value)]

    (total,) = over_window(cx, [empty], step)
    if a.kind == "avg":
        total = b.scalar("div", total, _count(cx, index, dtype))
    elif a.kind == "lp":
        total = _root(cx, total)
    return b.cast(total, cx.result_type.dtype.name)


def _power(cx: ElementCx, value: Value, p: float) -> Value:
    if p == 1:
        return value
    b = cx.b
    if p == 2:
        return b.scalar("mul", value, value)
    return b.scalar("pow", value, b.const(p, element_dtype(value).name))


def _root(cx: ElementCx, total: Value) -> Value:
    if cx.attrs.p == 2:
        return cx.b.scalar("sqrt", total)
    return _power(cx, total, 1 / cx.attrs.p)


def _count(cx: ElementCx, index: Sequence[Index], dtype: DType) -> Value:
    """The divisor of a mean: see `_counts`; by axis, how many taps end before a limit."""
    b, a, dims = cx.b, cx.attrs, cx.operand_types[0].dims
    axes = spatial_axes(a.layout, len(dims))
    count: Index = 1
    for i, axis in enumerate(axes):
        if _fits(a, i, dims[axis]):
            count = b.mul(count, a.kernel[i])
            continue
        low, high = (a.pads[i], a.pads[len(axes) + i]) if a.count_include_pad else (0, 0)
        start = b.sub(b.mul(index[axis], a.strides[i]), b.dim(a.pads[i]))

        def before(limit: Dim, i: int = i, start: Index = start) -> Index:
            room = b.add(b.sub(b.dim(limit), start), a.dilations[i] - 1)
            return b.index("min", b.div(b.index("max", room, 0), a.dilations[i]), a.kernel[i])

        count = b.mul(count, b.sub(before(dims[axis] + high), before(-low)))
    return b.cast(b.from_index(b.index("max", count, 1), "i64"), dtype.name)


POOL = Primitive(
    name="pool",  # a window without elements gives 0, or the least value for max
    infer=_infer,
    evaluate=_evaluate,
    attrs={
        "kind": Attr("str"),
        **WINDOW,
        "count_include_pad": Attr("bool", False),
        "p": Attr("float", 2.0),
    },
    element=_element,
    tags=frozenset({"window"}),
    tolerance=1e-5,
    computes=True,
).register()
