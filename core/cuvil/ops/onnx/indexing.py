"""Elements by index, and indices of elements."""

from __future__ import annotations

import numpy as np

from cuvil.ir.dims import Dim, product
from cuvil.ops.compose.helpers import axis_in, index_list, unsqueezed
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import extents, where_true
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("Gather")
def gather(cx: Cx, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """Slices of x along an axis."""
    return cx.b.gather(x, indices, axis=axis_in(cx, axis, cx.type(x).rank))


@onnx_op("GatherElements", since=11)
def gather_elements(cx: Cx, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """One element of x per index, along an axis."""
    return cx.b.gather_elements(x, indices, axis=axis_in(cx, axis, cx.type(x).rank))


@onnx_op("GatherND", since=11)
def gather_nd(cx: Cx, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    """Slices of x that index tuples name."""
    return cx.b.gather_nd(x, indices, batch_dims=batch_dims)


@onnx_op("Scatter", since=9)
def scatter(cx: Cx, x: Value, indices: Value, updates: Value, *, axis: int = 0) -> Value:
    """The old name of ScatterElements."""
    return scatter_elements(cx, x, indices, updates, axis=axis)


@onnx_op("ScatterElements", since=11)
def scatter_elements(
    cx: Cx, x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """A copy of x with single elements replaced or combined."""
    at = axis_in(cx, axis, cx.type(x).rank)
    return cx.b.scatter_elements(x, indices, updates, axis=at, reduction=reduction)


@onnx_op("ScatterND", since=11)
def scatter_nd(
    cx: Cx, x: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    """A copy of x with slices replaced or combined."""
    return cx.b.scatter_nd(x, indices, updates, reduction=reduction)


@onnx_op("OneHot", since=9)
def one_hot_legacy(cx: Cx, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """Before opset 11 a negative index is the index of nothing."""
    return _one_hot(cx, cx.b.cast(indices, to="i64"), _depth(cx, depth), values, axis)


@onnx_op("OneHot", since=11)
def one_hot(cx: Cx, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """values[1] where the position along a new axis is the index, else values[0]."""
    place, size = cx.b.cast(indices, to="i64"), _depth(cx, depth)
    below = cx.b.lt(place, cx.b.scalar(0, "i64"))
    place = cx.b.select(below, cx.b.add(place, _number(cx, size)), place)
    return _one_hot(cx, place, size, values, axis)


def _depth(cx: Cx, depth: Value) -> Dim:
    known = cx.known(depth)
    size: Dim = _found_depth(cx, depth) if known is None else known.ravel()[0]
    return int(size) if isinstance(size, np.generic) else size


def _one_hot(cx: Cx, place: Value, size: Dim, values: Value, axis: int) -> Value:
    rank = cx.type(place).rank
    at = axis_in(cx, axis, rank + 1)
    place = unsqueezed(cx, place, [at])
    steps = cx.b.iota(dims=[size if k == at else 1 for k in range(rank + 1)], axis=at)
    off, on = (_element(cx, values, k) for k in (0, 1))
    return cx.b.select(cx.b.eq(place, steps), on, off)


def _found_depth(cx: Cx, depth: Value) -> Dim:
    return extents(cx, cx.b.cast(depth, to="i64"), "depth")[0]


def _number(cx: Cx, value: Dim) -> Value:
    return cx.b.dims(dims=(value,), shape=(), dtype="i64")


def _element(cx: Cx, vector: Value, k: int) -> Value:
    return cx.b.reshape(cx.b.slice(vector, starts=(k,), steps=(1,), dims=(1,)), dims=())


@onnx_op("Compress", since=9)
def compress(cx: Cx, x: Value, condition: Value, *, axis: int | None = None) -> Value:
    """Slices of x where a condition holds."""
    if axis is None:
        x, at = cx.b.reshape(x, dims=(cx.type(x).size,)), 0
    else:
        at = axis_in(cx, axis, cx.type(x).rank)
    if cx.known(condition) is None:
        return cx.b.gather(x, where_true(cx, condition, "compressed"), axis=at)
    chosen = np.flatnonzero(np.array(index_list(cx, cx.b.cast(condition, to="i64"), "condition")))
    return cx.b.gather(x, cx.b.const(chosen.astype(np.int64)), axis=at)


def _is_something(cx: Cx, x: Value) -> Value:
    """Where an element is neither 0 nor an empty string."""
    if cx.type(x).dtype.is_string:
        return cx.b.ne(x, cx.b.const(""))
    return x if cx.type(x).dtype.name == "bool" else cx.b.cast(x, to="bool")


@onnx_op("NonZero", since=9)
def non_zero(cx: Cx, x: Value) -> Value:
    """Positions of elements that are not 0, a column for each."""
    if cx.known(x) is not None and all(isinstance(d, int) for d in cx.dims(x)):
        return _known_non_zero(cx, x)
    kind = cx.type(x)
    flat = cx.b.reshape(_is_something(cx, x), dims=(kind.size,))
    place = where_true(cx, flat, "nonzero")
    (count,) = cx.dims(place)
    if not kind.rank:
        return cx.b.broadcast(cx.b.scalar(0, "i64"), dims=(0, count))
    rows = []
    for axis, extent in enumerate(kind.dims):
        inner = _number(cx, product(kind.dims[axis + 1 :]))
        row = (
            cx.b.mod(cx.b.div(place, inner), _number(cx, extent))
            if axis
            else (cx.b.div(place, inner))
        )
        rows.append(cx.b.reshape(row, dims=(1, count)))
    return cx.b.concat(*rows, axis=0) if len(rows) > 1 else rows[0]


def _known_non_zero(cx: Cx, x: Value) -> Value:
    numbers = index_list(cx, cx.b.cast(cx.b.cast(x, to="bool"), to="i64"), "the tensor")
    shape = tuple(d for d in cx.dims(x) if isinstance(d, int))
    found = np.array(np.nonzero(np.array(numbers).reshape(shape)) if shape else [])
    return cx.b.const(found.astype(np.int64).reshape(len(shape), -1 if shape else sum(numbers)))
