"""Copies of tensors with elements replaced, or combined, by index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.indexing import front_of, placed, tuples
from cuvil.ops.aten.promotion import as_value, cast
from cuvil.ops.aten.registry import aten, aten_rows
from cuvil.ops.aten.views import diagonal_places, spread, transposed
from cuvil.ops.compose.helpers import axis_in

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul",
               "amax": "max", "amin": "min"}  # fmt: skip


def _scattered(
    cx: Cx, x: Value, dim: int, index: Value, source: Value, reduction: str = "none"
) -> Value:
    """Scalars are vectors of one element; of the source only as much is read as is indexed."""
    dims, kind = cx.dims(x), cx.type(x).dtype.name
    if cx.type(index).size == 0:  # of any rank
        return x
    if kind == "bool" and reduction in ("add", "mul"):
        x, source = (cast(cx, v, "u8") for v in (x, source))
        how = "max" if reduction == "add" else "min"
        return cast(cx, _scattered(cx, x, dim, index, source, how), "bool")
    one = [cx.b.reshape(v, dims=(1,)) if not cx.type(v).rank else v for v in (x, index)]
    wanted = cx.dims(one[1])
    if not cx.type(source).rank:
        source = spread(cx, source, wanted)
    elif cx.dims(source) != wanted:
        rank = len(wanted)
        source = cx.b.slice(source, starts=[0] * rank, steps=[1] * rank, dims=wanted)
    axis = axis_in(cx, dim, len(wanted), "dim")
    found = cx.b.scatter_elements(
        one[0], cast(cx, one[1], "i64"), source, axis=axis, reduction=reduction
    )
    return cx.b.reshape(found, dims=dims)


@aten("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(cx: Cx, x: Value, dim: int, index: Value, source: Value, *, reduce: str = "") -> Value:
    """Elements replaced, added or multiplied along an axis."""
    source = as_value(cx, source, cx.type(x).dtype.name)
    return _scattered(cx, x, dim, index, source, _REDUCTIONS.get(reduce, "none"))


@aten("scatter_add")
def scatter_add(cx: Cx, x: Value, dim: int, index: Value, source: Value) -> Value:
    """Elements added along an axis."""
    return _scattered(cx, x, dim, index, source, "add")


@aten("scatter_reduce.two")
def scatter_reduce(
    cx: Cx,
    x: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    """Elements combined along an axis, with those that are there, or without."""
    return _combined(cx, x, dim, index, source, reduce, include_self)


def _combined(
    cx: Cx, x: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool
) -> Value:
    """Elements combined with those that are there, or, where some are, with none but them."""
    kind = cx.type(x).dtype.name
    if kind == "bool":
        x, source = (cast(cx, v, "u8") for v in (x, source))
    start = x if include_self else _neutral(cx, x, dim, index, reduce)
    how = "add" if reduce == "mean" else _REDUCTIONS[reduce]
    if kind == "bool":  # u8 has no room for sums of truths
        how = {"add": "max", "mul": "min"}.get(how, how)
    found = _scattered(cx, start, dim, index, source, how)
    if reduce == "mean":
        found = _over_count(cx, found, dim, index, source, include_self)
    return cast(cx, found, kind)


def _over_count(
    cx: Cx, total: Value, dim: int, index: Value, source: Value, include_self: bool
) -> Value:
    """Sums over how many elements went into each; integers are rounded down."""
    b = cx.b
    one = b.broadcast(b.scalar(1, total), dims=cx.dims(source))
    own = b.broadcast(b.scalar(int(include_self), total), dims=cx.dims(total))
    count = b.max(_scattered(cx, own, dim, index, one, "add"), b.scalar(1, total))
    if cx.type(total).dtype.is_float:
        return b.div(total, count)
    return b.div(b.sub(total, b.mod(total, count)), count)


def _neutral(cx: Cx, x: Value, dim: int, index: Value, reduce: str) -> Value:
    """`x` with the element that changes nothing where an index points to."""
    kind = cx.type(x).dtype
    limits = (-math.inf, math.inf) if kind.is_float else _limits(kind.numpy)
    value = {"prod": 1, "amax": limits[0], "amin": limits[1]}.get(reduce, 0)
    return _scattered(cx, x, dim, index, cx.b.scalar(value, x))


def _limits(kind: Any) -> tuple[int, int]:
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


@aten("index_put", "_unsafe_index_put")
def index_put(
    cx: Cx, x: Value, indices: Sequence[Value], values: Value, accumulate: bool = False
) -> Value:
    """numpy's assignment by integer tensors, or by one mask; or a sum."""
    values = cast(cx, values, cx.type(x).dtype.name)
    masks = [v for v in indices if v is not None and cx.type(v).dtype.name == "bool"]
    if masks:
        return _masked(cx, x, indices, values, accumulate)
    axes, found, dims = placed(cx, indices)
    kind = cx.type(x).dtype.name
    how = "add" if accumulate else "none"
    if accumulate and kind == "bool":
        x, values, how = cast(cx, x, "u8"), cast(cx, values, "u8"), "max"
    rest = [k for k in range(cx.type(x).rank) if k not in axes]
    order = [*axes, *rest]
    moved = transposed(cx, x, order)
    updates = _updates(cx, moved, values, len(axes), front_of(axes), dims)
    result = cx.b.scatter_nd(moved, tuples(cx, found, dims), updates, reduction=how)
    return cast(cx, transposed(cx, result, [order.index(k) for k in range(len(order))]), kind)


def _updates(
    cx: Cx, moved: Value, values: Value, depth: int, first: int, dims: Sequence[Dim]
) -> Value:
    """Values in the shape of what is indexed, the axes of the indices in front."""
    rest, n = cx.dims(moved)[depth:], len(dims)
    whole = spread(cx, values, (*rest[:first], *dims, *rest[first:]))
    order = [*range(first, first + n), *range(first), *range(first + n, len(rest) + n)]
    return transposed(cx, whole, order)


def _masked(cx: Cx, x: Value, indices: Sequence[Value], values: Value, accumulate: bool) -> Value:
    """Values where a mask of the leading axes holds: one, or a row after the other."""
    if len(indices) != 1:
        cx.fail("a mask beside other indices")
    b, mask, rank = cx.b, indices[0], cx.type(x).rank
    rest = rank - cx.type(mask).rank
    if cx.type(values).rank > rest and cx.dims(values)[0] != 1:
        values = _rows_by_number(cx, mask, values)
    elif cx.type(values).rank > rest:
        values = b.reshape(values, dims=cx.dims(values)[1:])
    mask = b.reshape(mask, dims=[*cx.dims(mask), *[1] * rest])
    if accumulate:
        values = b.emit("or" if cx.type(x).dtype.name == "bool" else "add", [x, values])
    return b.select(mask, values, x)


def _rows_by_number(cx: Cx, mask: Value, values: Value) -> Value:
    """For every element of a mask, row k of the values, where it is the k-th that holds."""
    b, dims = cx.b, cx.dims(values)
    flat = b.cast(b.reshape(mask, dims=(cx.type(mask).size,)), to="i64")
    number = b.cumulative(flat, kind="sum", axis=0, exclusive=True)
    last = b.dims(dims=(dims[0] - 1,), shape=(), dtype="i64")
    rows = b.gather(values, b.min(number, last), axis=0)
    return b.reshape(rows, dims=(*cx.dims(mask), *dims[1:]))


def _spread_index(cx: Cx, x: Value, dim: int, index: Value, source: Value) -> tuple[Any, ...]:
    """(x with an axis at least, the axis, indices and source of the extents of what is written)."""
    rank = cx.type(x).rank
    whole = x if rank else cx.b.reshape(x, dims=(1,))
    axis, count = axis_in(cx, dim, max(rank, 1), "dim"), cx.type(index).size
    dims = [count if k == axis else d for k, d in enumerate(cx.dims(whole))]
    places = [count if k == axis else 1 for k in range(len(dims))]
    place = spread(cx, cx.b.reshape(cast(cx, index, "i64"), dims=places), dims)
    return whole, axis, place, cx.b.reshape(source, dims=dims)


@aten("index_reduce")
def index_reduce(
    cx: Cx,
    x: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    """Slices of an axis combined."""
    whole, axis, place, source = _spread_index(cx, x, dim, index, source)
    found = _combined(cx, whole, axis, place, source, reduce, include_self)
    return cx.b.reshape(found, dims=cx.dims(x))


def by_index(reduction: str) -> Callable[..., Value]:
    """Slices of an axis replaced or added."""

    def compose(
        cx: Cx, x: Value, dim: int, index: Value, source: Value, *, alpha: Value = 1
    ) -> Value:
        kind, how = cx.type(x).dtype.name, reduction
        if kind == "bool" and alpha == 0:
            return x
        if kind == "bool" and how == "add":
            x, how = cast(cx, x, "u8"), "max"
        source = cast(cx, source, cx.type(x).dtype.name)
        if alpha != 1 and kind != "bool":
            source = cx.b.mul(source, as_value(cx, alpha, kind))
        whole, axis, place, source = _spread_index(cx, x, dim, index, source)
        found = cx.b.scatter_elements(whole, place, source, axis=axis, reduction=how)
        return cast(cx, cx.b.reshape(found, dims=cx.dims(x)), kind)

    return compose


aten_rows(by_index, {"index_add": "add", "index_copy": "none"})


@aten("diagonal_scatter")
def diagonal_scatter(
    cx: Cx, x: Value, source: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """A copy of x with a diagonal of two axes replaced; the diagonal is the source's last axis."""
    b, rank = cx.b, cx.type(x).rank
    rows, columns = dim1 % rank, dim2 % rank
    count = cx.dims(source)[-1]
    if count == 0:
        return x
    order = [*(k for k in range(rank) if k not in (rows, columns)), rows, columns]
    moved = transposed(cx, x, order)
    dims = cx.dims(moved)
    flat = b.reshape(moved, dims=(*dims[:-2], dims[-2] * dims[-1]))
    place = spread(cx, diagonal_places(cx, dims[-1], count, offset), cx.dims(source))
    found = b.scatter_elements(flat, place, cast(cx, source, cx.type(x).dtype.name), axis=rank - 2)
    return transposed(cx, b.reshape(found, dims=dims), [order.index(k) for k in range(rank)])


@aten("put")
def put(cx: Cx, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """Elements of the flattened tensor replaced or added."""
    count = cx.type(index).size
    flat = cx.b.reshape(x, dims=(cx.type(x).size,))
    places, values = (cx.b.reshape(v, dims=(count,)) for v in (index, source))
    how = "add" if accumulate else "none"
    return cx.b.reshape(_scattered(cx, flat, 0, places, values, how), dims=cx.dims(x))


@aten("masked_scatter")
def masked_scatter(cx: Cx, x: Value, mask: Value, source: Value) -> Value:
    """Where a mask holds, elements of the source, one after the other."""
    x, mask = (spread(cx, v, cx.result.dims) for v in (x, mask))
    flat = cx.b.reshape(source, dims=(cx.type(source).size,))
    return cx.b.select(mask, _rows_by_number(cx, mask, flat), x)
