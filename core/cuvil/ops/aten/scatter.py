"""Copies of tensors with elements replaced, or combined, by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    if reduce not in _REDUCTIONS or cx.type(x).dtype.name == "bool":
        cx.fail(f"reduce='{reduce}' of {cx.type(x).dtype.name}")
    start = x if include_self else _neutral(cx, x, dim, index, reduce)
    return _scattered(cx, start, dim, index, source, _REDUCTIONS[reduce])


def _neutral(cx: Cx, x: Value, dim: int, index: Value, reduce: str) -> Value:
    """`x` with the element that changes nothing where an index points to."""
    kind = cx.type(x).dtype
    if reduce in ("amax", "amin") and not kind.is_float:
        cx.fail(f"reduce='{reduce}' of integers without the elements that are there")
    value = {"sum": 0.0, "prod": 1.0, "amax": float("-inf"), "amin": float("inf")}[reduce]
    return _scattered(cx, x, dim, index, cx.b.scalar(value, x))


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
    """One value where a mask of the leading axes holds."""
    if len(indices) != 1 or cx.type(values).size != 1:
        cx.fail("values by a mask: which goes where only a run can tell")
    mask = indices[0]
    rank = cx.type(x).rank
    mask = cx.b.reshape(mask, dims=[*cx.dims(mask), *[1] * (rank - cx.type(mask).rank)])
    value = cx.b.reshape(values, dims=())
    return cx.b.select(mask, cx.b.add(x, value) if accumulate else value, x)


def by_index(reduction: str) -> Callable[..., Value]:
    """Slices of an axis replaced or added."""

    def compose(
        cx: Cx, x: Value, dim: int, index: Value, source: Value, *, alpha: Value = 1
    ) -> Value:
        kind, rank = cx.type(x).dtype.name, cx.type(x).rank
        how = reduction
        if kind == "bool" and how == "add":
            x, how = cast(cx, x, "u8"), "max"
        source = cast(cx, source, cx.type(x).dtype.name)
        if alpha != 1 and kind != "bool":
            source = cx.b.mul(source, as_value(cx, alpha, kind))
        whole = x if rank else cx.b.reshape(x, dims=(1,))
        axis = axis_in(cx, dim, max(rank, 1), "dim")
        count = cx.type(index).size
        dims = [count if k == axis else d for k, d in enumerate(cx.dims(whole))]
        places = [count if k == axis else 1 for k in range(len(dims))]
        place = spread(cx, cx.b.reshape(cast(cx, index, "i64"), dims=places), dims)
        source = cx.b.reshape(source, dims=dims)
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
    b = cx.b
    dims = cx.result.dims
    x, mask = (spread(cx, v, dims) for v in (x, mask))
    flat = b.reshape(mask, dims=(cx.type(mask).size,))
    number = b.cumulative(b.cast(flat, to="i64"), kind="sum", axis=0, exclusive=True)
    size = cx.type(source).size
    last = b.dims(dims=(size - 1,), shape=(), dtype="i64")
    picked = b.gather(b.reshape(source, dims=(size,)), b.min(number, last), axis=0)
    return b.select(mask, b.reshape(picked, dims=dims), x)
