"""Elements of an axis in order."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import cast
from cuvil.ops.aten.registry import aten
from cuvil.ops.aten.views import part
from cuvil.ops.compose.helpers import axis_in


def ordered(cx: Cx, x: Value, k: Dim, dim: int, largest: bool) -> tuple[Value, Value]:
    """(values, positions) of the first k elements in order; the first of equals comes first."""
    kind, rank = cx.type(x).dtype.name, cx.type(x).rank
    if not rank:
        values, places = ordered(cx, cx.b.reshape(x, dims=(1,)), k, 0, largest)
        return cx.b.reshape(values, dims=()), cx.b.reshape(places, dims=())
    value = cast(cx, x, "u8") if kind == "bool" else x
    found, places = cx.b.top_k(value, axis=axis_in(cx, dim, rank, "dim"), k=k, largest=largest)
    return cast(cx, found, kind), places


def _extent(cx: Cx, x: Value, dim: int) -> Dim:
    rank = cx.type(x).rank
    return cx.dims(x)[axis_in(cx, dim, rank, "dim")] if rank else 1


@aten("topk")
def topk(
    cx: Cx, x: Value, k: Dim, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    """The greatest or least k elements, in order."""
    return ordered(cx, x, k, dim, largest)


@aten("sort")
def sort(cx: Cx, x: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """All elements, in order."""
    return ordered(cx, x, _extent(cx, x, dim), dim, descending)


@aten("sort.stable")
def sort_stable(
    cx: Cx, x: Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Value, Value]:
    """All elements, in order, equal ones in theirs."""
    return sort(cx, x, dim, descending)


@aten("kthvalue")
def kthvalue(cx: Cx, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """The element that is k-th from below."""
    return _chosen(cx, x, k - 1, dim)


@aten("median.dim")
def median(cx: Cx, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """The element in the middle, the lower of two; a NaN where there is one."""
    if cx.type(x).dtype.is_float and cx.type(x).rank:
        return _with_nan(cx, x, dim)
    return _chosen(cx, x, (_extent(cx, x, dim) - 1) // 2, dim)


@aten("median")
def median_of_all(cx: Cx, x: Value) -> Value:
    """The element in the middle of all."""
    return median(cx, cx.b.reshape(x, dims=(cx.type(x).size,)), 0)[0]


def _chosen(cx: Cx, x: Value, place: Dim, dim: int) -> tuple[Value, Value]:
    values, places = ordered(cx, x, _extent(cx, x, dim), dim, False)
    if cx.type(x).rank:
        axis = axis_in(cx, dim, cx.type(x).rank, "dim")
        values, places = (part(cx, v, axis, place, 1) for v in (values, places))
    dims = cx.result.dims
    return cx.b.reshape(values, dims=dims), cx.b.reshape(places, dims=dims)


def _with_nan(cx: Cx, x: Value, dim: int) -> tuple[Value, Value]:
    b, axis = cx.b, axis_in(cx, dim, cx.type(x).rank, "dim")
    value, place = _chosen(cx, x, (_extent(cx, x, dim) - 1) // 2, dim)
    bad = b.isnan(x)
    some = b.reshape(b.reduce(bad, kind="any", axes=(axis,)), dims=cx.dims(value))
    first = b.arg_reduce(b.cast(bad, to="u8"), kind="max", axis=axis)
    nan = b.scalar(float("nan"), value)
    first = b.reshape(first, dims=cx.dims(place))
    return b.select(some, nan, value), b.select(some, first, place)


@aten("nanmedian.dim")
def nanmedian(cx: Cx, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """The element in the middle of those that are numbers."""
    if not (cx.type(x).dtype.is_float and cx.type(x).rank):
        return median(cx, x, dim, keepdim)
    b, axis = cx.b, axis_in(cx, dim, cx.type(x).rank, "dim")
    bad = b.isnan(x)
    last = b.select(bad, b.scalar(float("inf"), x), x)
    values, places = ordered(cx, last, _extent(cx, x, dim), dim, False)
    good = b.cast(b.not_(bad), to="i64")
    count = b.reduce(good, kind="sum", axes=(axis,), keepdims=True)
    middle = b.max(b.sub(count, b.scalar(1, count)), b.scalar(0, count))
    middle = b.div(middle, b.scalar(2, count))
    value, place = (b.gather_elements(v, middle, axis=axis) for v in (values, places))
    none = b.eq(count, b.scalar(0, count))
    value = b.select(none, b.scalar(float("nan"), value), value)
    dims = cx.result.dims
    return b.reshape(value, dims=dims), b.reshape(place, dims=dims)


@aten("nanmedian")
def nanmedian_of_all(cx: Cx, x: Value) -> Value:
    """The element in the middle of all that are numbers."""
    return nanmedian(cx, cx.b.reshape(x, dims=(cx.type(x).size,)), 0)[0]


@aten("mode")
def mode(cx: Cx, x: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """The most frequent element, the least of several; and the last place that has it."""
    b, rank = cx.b, cx.type(x).rank
    if not rank:
        return x, b.scalar(0, "i64")
    axis, extent = axis_in(cx, dim, rank, "dim"), _extent(cx, x, dim)
    values, places = ordered(cx, x, extent, dim, False)
    step = b.iota(dims=[extent if k == axis else 1 for k in range(rank)], axis=axis)
    apart = [part(cx, values, axis, first, extent - 1) for first in (0, 1)]
    begun = b.cast(b.ne(*apart), to="i64")  # a run of equal elements begins with the second
    low = [int(k == axis) for k in range(rank)]
    start = b.mul(b.pad(begun, b.scalar(0, "i64"), low=low, high=[0] * rank), step)
    length = b.sub(step, b.cumulative(start, kind="max", axis=axis))
    last = b.arg_reduce(length, kind="max", axis=axis, keepdims=True)  # of the first longest run
    value, place = (b.gather_elements(v, last, axis=axis) for v in (values, places))
    dims = cx.result.dims
    return b.reshape(value, dims=dims), b.reshape(place, dims=dims)
