"""Operators that move, repeat or drop elements: slices, splits, joins, pads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuvil.ir.dims import Dim, SymDim, ceil_div, dim_max, dim_min
from cuvil.ops.compose.helpers import axes_in, axis_in, index_list, static
from cuvil.ops.elementwise import broadcast_dims
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import (
    as_i64,
    as_value,
    capped_step,
    elements,
    extents,
    slice_bounds,
)
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]
_OPEN = 2**31 - 1  # a bound from here on means the end of the axis


@onnx_op("Concat")
def concat_legacy(cx: Cx, x: Value, *rest: Value, axis: int = 1) -> Value:
    """The axis has a default before opset 4."""
    return concat(cx, x, *rest, axis=axis)


@onnx_op("Concat", since=4)
def concat(cx: Cx, x: Value, *rest: Value, axis: int) -> Value:
    """The operands one after the other along an axis."""
    at = axis_in(cx, axis, cx.type(x).rank)
    return cx.b.concat(x, *rest, axis=at) if rest else x


@onnx_op("Slice")
def slice_attributes(
    cx: Cx, x: Value, *, starts: Ints, ends: Ints, axes: Ints | None = None
) -> Value:
    """Bounds as attributes, before opset 10."""
    chosen = range(len(starts)) if axes is None else axes
    return sliced(cx, x, starts, ends, list(chosen), [1] * len(starts))


@onnx_op("Slice", since=10)
def slice_inputs(
    cx: Cx, x: Value, starts: Value, ends: Value, axes: Value = None, steps: Value = None
) -> Value:
    """numpy's slices: bounds are clamped, negative ones count from the end."""
    known = [v is None or cx.known(v) is not None for v in (starts, ends, steps)]
    if not all(known):
        return _sliced_by_data(cx, x, starts, ends, axes, steps)
    first, last = cx.known_ints(starts, "starts"), cx.known_ints(ends, "ends")
    chosen = list(range(len(first))) if axes is None else index_list(cx, axes, "axes")
    return sliced(
        cx,
        x,
        first,
        last,
        chosen,
        [1] * len(first) if steps is None else index_list(cx, steps, "steps"),
    )


def _sliced_by_data(
    cx: Cx, x: Value, starts: Value, ends: Value, axes: Value, steps: Value
) -> Value:
    """Bounds that the run finds; where steps are, too, elements are gathered."""
    lengths = [cx.dims(v)[0] for v in (starts, ends, axes, steps) if v is not None]
    count = next((n for n in lengths if isinstance(n, int)), None)
    first, last = (elements(cx, v, w, count) for v, w in ((starts, "starts"), (ends, "ends")))
    chosen = list(range(len(first))) if axes is None else index_list(cx, axes, "axes")
    one = cx.b.scalar(1, "i64")
    strides = [one] * len(first) if steps is None else elements(cx, steps, "steps", count)
    if not len(first) == len(last) == len(chosen) == len(strides):
        cx.bad("starts, ends, axes and steps differ in length")
    at = axes_in(cx, chosen, cx.type(x).rank)
    for axis, start, end, step in zip(at, first, last, strides, strict=True):
        dims = list(cx.dims(x))
        begin, count = slice_bounds(cx, dims[axis], start, end, step)
        size = cx.bind(count, "sliced", most=dims[axis])
        if cx.known(step) is None:
            place = cx.b.iota(dims=(size,), axis=0)
            x = cx.b.gather(x, cx.b.add(cx.b.mul(place, step), begin), axis=axis)
        else:
            origin: list[Dim] = [0] * len(dims)
            origin[axis] = cx.bind(begin, "start", most=dims[axis])
            stride = capped_step(*index_list(cx, step, "a step"))
            by = [stride if k == axis else 1 for k in range(len(dims))]
            dims[axis] = size
            x = cx.b.slice(x, starts=origin, steps=by, dims=dims)
    return x


def sliced(
    cx: Cx,
    x: Value,
    starts: Sequence[Dim],
    ends: Sequence[Dim],
    axes: Sequence[int],
    steps: Sequence[int],
) -> Value:
    """x[start:end:step] on these axes."""
    dims = list(cx.dims(x))
    if not len(starts) == len(ends) == len(axes) == len(steps):
        cx.bad("starts, ends, axes and steps differ in length")
    first, stride, out = [0] * len(dims), [1] * len(dims), list(dims)
    begin: list[Dim] = list(first)
    at = axes_in(cx, axes, len(dims))
    for axis, start, end, step in zip(at, starts, ends, steps, strict=True):
        if step == 0:
            cx.bad("a step is 0")
        step = capped_step(step)
        begin[axis], out[axis] = bounded(cx, dims[axis], start, end, step)
        stride[axis] = step
    if out == dims and all(s == 1 for s in stride):
        return x
    return cx.b.slice(x, starts=begin, steps=stride, dims=out)


def bounded(cx: Cx, dim: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """(first position, count) of a slice of an axis.

    A bound that is an expression counts from the end where it is never positive. Instead of
    clamping, a few things are assumed of symbols, which a run checks: see `_assume`.
    """
    if all(isinstance(v, int) for v in (dim, start, end)):
        chosen = range(*slice(start, end, step).indices(dim))  # type: ignore[arg-type]
        return (chosen.start if len(chosen) else 0), len(chosen)
    _assume(cx, dim, start, end)
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    # Going up, a start beyond the end need not be clamped: nothing is taken then.
    first = _clamped(cx, start, dim, low, high if step < 0 else None)
    last = _clamped(cx, end, dim, low, high)
    span = last - first if step > 0 else first - last
    count = ceil_div(span, abs(step))
    return first, count if cx.at_least(count, 0) else dim_max(count, 0)


def _assume(cx: Cx, dim: Dim, start: Dim, end: Dim) -> None:
    """The first or last element is there; a limit as of a table or of 10**9 is not exceeded."""
    if (start, end) == (0, 1) or (start == -1 and isinstance(end, int) and end > 0):
        cx.assume(dim, 1, None)
    for bound in (start, end):
        if isinstance(bound, SymDim) and isinstance(dim, int):
            cx.assume(bound, 0, dim)
        if isinstance(bound, int) and 2**20 <= bound < _OPEN:
            cx.assume(dim, 0, bound)


def _clamped(cx: Cx, value: Dim, dim: Dim, low: Dim, high: Dim | None) -> Dim:
    if isinstance(value, int) and abs(value) >= _OPEN:
        return (dim if high is None else high) if value > 0 else low
    if cx.at_least(-value, 0 if isinstance(value, SymDim) else 1):
        return value + dim if cx.at_least(value + dim, low) else dim_max(value + dim, low)
    if high is None or cx.at_least(high, value):
        return value
    return high if cx.at_least(value, high) else dim_min(value, high)


@onnx_op("Split")
def split_legacy(
    cx: Cx, x: Value, sizes: Value = None, *, axis: int = 0, split: Ints | None = None
) -> tuple[Value, ...]:
    """Sizes as an attribute, before opset 13 (and in opset 1 as an input of the type of x)."""
    if split is None and sizes is not None:
        split = tuple(index_list(cx, as_i64(cx, sizes), "split"))
    return _split(cx, x, axis, split)


@onnx_op("Split", since=13)
def split(
    cx: Cx, x: Value, sizes: Value = None, *, axis: int = 0, num_outputs: int | None = None
) -> tuple[Value, ...]:
    """Parts of an axis: of the given sizes, or equal ones, the last perhaps smaller."""
    if num_outputs is not None and num_outputs != len(cx.outputs):
        cx.bad(f"num_outputs is {num_outputs}, but there are {len(cx.outputs)} outputs")
    if sizes is None:
        return _split(cx, x, axis, None)
    extent = cx.dims(x)[axis_in(cx, axis, cx.type(x).rank)]
    count = len(cx.outputs)
    return _split(cx, x, axis, extents(cx, sizes, "split", [extent] * count, count))


def _split(cx: Cx, x: Value, axis: int, sizes: Sequence[Dim] | None) -> tuple[Value, ...]:
    dims = list(cx.dims(x))
    at, count = axis_in(cx, axis, len(dims)), len(cx.outputs)
    if sizes is None:
        part = ceil_div(dims[at], count)
        sizes = [*[part] * (count - 1), dims[at] - part * (count - 1)]
    total = sum(sizes[1:], start=sizes[0]) if sizes else 0
    if len(sizes) != count or (
        isinstance(total, int) and total != dims[at] and isinstance(dims[at], int)
    ):
        cx.bad(f"axis {at} of {dims[at]} does not split into {', '.join(map(str, sizes))}")
    cx.equal(total, dims[at])
    if sizes and isinstance(total, SymDim):
        cx.require(total, dims[at])
    parts: list[Value] = []
    first: Dim = 0
    for size in sizes:
        begin: list[Dim] = [first if k == at else 0 for k in range(len(dims))]
        out = [size if k == at else d for k, d in enumerate(dims)]
        parts.append(cx.b.slice(x, starts=begin, steps=[1] * len(dims), dims=out))
        first = first + size
    return tuple(parts)


@onnx_op("Expand", since=8)
def expand(cx: Cx, x: Value, shape: Value) -> Value:
    """Broadcast with a shape: extents of 1 repeat, on either side."""
    if cx.known(shape) is None:
        return _expanded_by_data(cx, x, elements(cx, shape, "the shape"))
    wanted = cx.known_ints(shape, "the shape")
    for have, want in zip(reversed(cx.dims(x)), reversed(wanted), strict=False):
        if have != 1 and want != 1:
            cx.equal(have, want)
    dims = broadcast_dims(cx.dims(x), wanted)
    return x if dims == cx.dims(x) else cx.b.broadcast(x, dims=dims)


def _expanded_by_data(cx: Cx, x: Value, shape: Sequence[Value]) -> Value:
    """Extents are the shape's, or the operand's where that says 1."""
    have = cx.dims(x)
    skip, one = len(shape) - len(have), cx.b.scalar(1, "i64")
    dims: list[Dim] = list(have[:-skip] if skip < 0 else [])
    for k, want in enumerate(shape):
        own = have[k - skip] if k >= skip else 1
        if own == 1:
            dims.append(cx.bind(want, "expanded"))
        else:
            kept = cx.b.select(cx.b.eq(want, one), as_value(cx, own), want)
            dims.append(cx.bind(kept, "expanded", most=own))
    return cx.b.broadcast(x, dims=dims)


@onnx_op("Tile", since=6)
def tile(cx: Cx, x: Value, repeats: Value) -> Value:
    """The tensor repeated along every axis."""
    dims, times = cx.dims(x), extents(cx, repeats, "repeats", count=cx.type(x).rank)
    if len(times) != len(dims):
        cx.bad(f"{len(times)} repeats for rank {len(dims)}")
    split_, spread, out = [], [], []
    for dim, count in zip(dims, times, strict=True):
        split_ += [dim] if count == 1 else [1, dim]
        spread += [dim] if count == 1 else [count, dim]
        out.append(dim * count)
    if spread == split_:
        return x
    return cx.b.reshape(cx.b.broadcast(cx.b.reshape(x, dims=split_), dims=spread), dims=out)


@onnx_op("Tile")
def tile_legacy(cx: Cx, x: Value, tiles: Value, axis: Value) -> Value:
    """One axis only, before opset 6; it and the tiles have the type of x."""
    at = index_list(cx, as_i64(cx, axis), "axis")[0]
    times = [1] * cx.type(x).rank
    times[axis_in(cx, at, len(times))] = index_list(cx, as_i64(cx, tiles), "tiles")[0]
    return tile(cx, x, cx.b.const(np.array(times, np.int64)))


@onnx_op("Pad")
def pad_legacy(
    cx: Cx, x: Value, *, paddings: Ints, mode: str = "constant", value: float = 0.0
) -> Value:
    """The first spelling."""
    return padded(cx, x, list(paddings), cx.b.scalar(value, x), mode)


@onnx_op("Pad", since=2)
def pad_attributes(
    cx: Cx, x: Value, *, pads: Ints, mode: str = "constant", value: float = 0.0
) -> Value:
    """Pads as an attribute, before opset 11."""
    return padded(cx, x, list(pads), cx.b.scalar(value, x), mode)


@onnx_op("Pad", since=11)
def pad(
    cx: Cx,
    x: Value,
    pads: Value,
    value: Value = None,
    axes: Value = None,
    *,
    mode: str = "constant",
) -> Value:
    """Pads below and above the axes; negative ones crop."""
    rank = cx.type(x).rank
    fill = cx.b.scalar(0, x) if value is None else cx.b.reshape(value, dims=())
    at = tuple(range(rank))
    if axes is not None:
        at = axes_in(cx, index_list(cx, axes, "axes"), rank)
    if cx.known(pads) is None:
        numbers = elements(cx, pads, "pads", 2 * len(at))
        return padded(cx, x, _pads_by_data(cx, cx.dims(x), at, numbers), fill, mode)
    given = cx.known_ints(pads, "pads")
    if len(given) != 2 * len(at):
        cx.bad(f"{len(given)} pads for {len(at)} axes")
    full: list[Dim] = [0] * (2 * rank)
    for k, axis in enumerate(at):
        full[axis], full[rank + axis] = given[k], given[len(at) + k]
    return padded(cx, x, full, fill, mode)


def _pads_by_data(
    cx: Cx, dims: Sequence[Dim], axes: Sequence[int], numbers: Sequence[Value]
) -> list[Dim]:
    """Pads that the run finds. The padded extent is a symbol of its own, not a sum of five."""
    b, zero = cx.b, cx.b.scalar(0, "i64")
    full: list[Dim] = [0] * (2 * len(dims))
    for k, axis in enumerate(axes):
        below, above = numbers[k], numbers[len(axes) + k]
        low = cx.bind(b.max(below, zero), "pad") - cx.bind(b.max(b.neg(below), zero), "crop")
        size = cx.bind(b.add(b.add(as_value(cx, dims[axis]), below), above), "padded")
        full[axis], full[len(dims) + axis] = low, size - dims[axis] - low
    return full


def padded(cx: Cx, x: Value, pads: list[Dim], fill: Value, mode: str) -> Value:
    """pads: below every axis, then above every one."""
    rank = cx.type(x).rank
    if len(pads) != 2 * rank:
        cx.bad(f"{len(pads)} pads for rank {rank}")
    if all(p == 0 for p in pads):
        return x
    return cx.b.pad(x, fill, low=pads[:rank], high=pads[rank:], mode=mode)


@onnx_op("Trilu", since=14)
def trilu(cx: Cx, x: Value, k: Value = None, *, upper: int = 1) -> Value:
    """The triangle of every matrix on one side of diagonal k; zeros elsewhere."""
    rows, columns = cx.dims(x)[-2:]
    row, column = cx.b.iota(dims=(rows, 1), axis=0), cx.b.iota(dims=(1, columns), axis=1)
    diagonal = row if k is None else cx.b.add(row, cx.b.reshape(k, dims=()))
    keep = cx.b.ge(column, diagonal) if upper else cx.b.le(column, diagonal)
    return cx.b.select(keep, x, cx.b.scalar(0, x))


@onnx_op("ReverseSequence", since=10)
def reverse_sequence(
    cx: Cx, x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0
) -> Value:
    """The first `lengths` steps of every batch entry in reverse order."""
    dims, rank = cx.dims(x), cx.type(x).rank
    batch, time = axis_in(cx, batch_axis, rank), axis_in(cx, time_axis, rank)
    step = cx.b.iota(dims=[dims[time] if k == time else 1 for k in range(rank)], axis=time)
    count = cx.b.reshape(lengths, dims=[dims[batch] if k == batch else 1 for k in range(rank)])
    mirrored = cx.b.sub(cx.b.sub(count, cx.b.scalar(1, count)), step)
    source = cx.b.select(cx.b.lt(step, count), mirrored, step)
    return cx.b.gather_elements(x, cx.b.broadcast(source, dims=dims), axis=time)


@onnx_op("CenterCropPad", since=18)
def center_crop_pad(cx: Cx, x: Value, shape: Value, *, axes: Ints | None = None) -> Value:
    """Crops or pads with zeros about the centre; an odd rest falls above."""
    dims, rank = cx.dims(x), cx.type(x).rank
    at = axes_in(cx, range(rank) if axes is None else axes, rank)
    wanted = static(cx, cx.known_ints(shape, "the shape"), "the shape")
    pads: list[Dim] = [0] * (2 * rank)
    for axis, target in zip(at, wanted, strict=True):
        change = target - dims[axis]
        low = dim_max(change, 0) // 2 - dim_max(-change, 0) // 2
        pads[axis], pads[rank + axis] = low, change - low
    return padded(cx, x, pads, cx.b.scalar(0, x), "constant")
