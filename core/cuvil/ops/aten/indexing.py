"""Elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim, product
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import cast
from cuvil.ops.aten.registry import aten
from cuvil.ops.aten.views import spread, transposed
from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.elementwise import broadcast_dims


@aten("embedding")
def embedding(
    cx: Cx,
    weight: Value,
    indices: Value,
    padding_idx: Dim = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """Rows of the weights."""
    return cx.b.gather(weight, indices, axis=0)


@aten("index_select")
def index_select(cx: Cx, x: Value, dim: int, index: Value) -> Value:
    """Places of an axis in another order."""
    rank = cx.type(x).rank
    if not rank:
        return x
    index = cx.b.reshape(index, dims=(cx.type(index).size,))
    return cx.b.gather(x, index, axis=axis_in(cx, dim, rank, "dim"))


@aten("gather")
def gather(cx: Cx, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """One element of x per index, along an axis."""
    dims = cx.dims(index)
    if cx.type(index).size == 0:  # of any type and rank
        return cx.b.broadcast(cx.b.scalar(0, x), dims=dims)
    if not cx.type(x).rank or not cx.type(index).rank:
        x, index = (
            cx.b.reshape(v, dims=(cx.type(v).size,)) if not cx.type(v).rank else v
            for v in (x, index)
        )
    axis = axis_in(cx, dim, cx.type(x).rank, "dim")
    return cx.b.reshape(cx.b.gather_elements(x, index, axis=axis), dims=dims)


@aten("take")
def take(cx: Cx, x: Value, index: Value) -> Value:
    """Elements of the flattened tensor."""
    return cx.b.gather(cx.b.reshape(x, dims=(cx.type(x).size,)), index, axis=0)


def placed(cx: Cx, indices: Sequence[Value]) -> tuple[list[int], list[Value], tuple[Dim, ...]]:
    """(axes that have an index, the indices, the extents to which they broadcast)."""
    axes = [k for k, v in enumerate(indices) if v is not None]
    found = [indices[k] for k in axes]
    for value in found:
        if cx.type(value).dtype.name in ("bool", "u8"):
            cx.fail("a mask as an index: how many elements it has only a run can tell")
    found = [cast(cx, v, "i64") for v in found]
    return axes, found, broadcast_dims(*(cx.dims(v) for v in found))


def tuples(cx: Cx, indices: Sequence[Value], dims: Sequence[Dim]) -> Value:
    """Indices side by side in a last axis."""
    columns = [cx.b.reshape(spread(cx, v, dims), dims=(*dims, 1)) for v in indices]
    return cx.b.concat(*columns, axis=len(dims)) if len(columns) > 1 else columns[0]


def front_of(axes: Sequence[int]) -> int:
    """Where the axes of the indices stand in the result: at the first, or in front."""
    together = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    return axes[0] if together else 0


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(cx: Cx, x: Value, indices: Sequence[Value]) -> Value:
    """numpy's indexing by integer tensors; None leaves an axis as it is."""
    axes, found, dims = placed(cx, indices)
    if len(axes) == 1:
        return cx.b.gather(x, found[0], axis=axes[0])
    rank = cx.type(x).rank
    rest = [k for k in range(rank) if k not in axes]
    moved = transposed(cx, x, [*axes, *rest])
    picked = cx.b.gather_nd(moved, tuples(cx, found, dims), batch_dims=0)
    first, n = front_of(axes), len(dims)
    order = [*range(n, n + first), *range(n), *range(n + first, n + len(rest))]
    return transposed(cx, picked, order)


@aten("_unsafe_masked_index")
def masked_index(cx: Cx, x: Value, mask: Value, indices: Sequence[Value], fill: Value) -> Value:
    """As `index`, with a number where the mask does not hold; indices there may be anything."""
    b = cx.b
    dims = cx.dims(x)
    safe = []
    for axis, value in enumerate(indices):
        if value is not None:
            value = cast(cx, value, "i64")
            last = b.dims(dims=(dims[axis] - 1,), shape=(), dtype="i64")
            value = b.min(b.max(value, b.scalar(0, "i64")), last)
        safe.append(value)
    picked = index(cx, x, safe)
    return b.select(mask, picked, cast(cx, b.scalar(fill, "f64"), cx.result.dtype.name))


@aten("bucketize.Tensor", "searchsorted.Tensor")
def searchsorted(cx: Cx, first: Value, second: Value, **options: Value) -> Value:
    """Where elements would stand in a sorted vector: how many of its elements are before."""
    boundaries, x = (second, first) if "bucketize" in cx.where else (first, second)
    if options.get("sorter") is not None:
        cx.fail("searchsorted by a sorter")
    b, right = cx.b, options.get("right") or options.get("side") == "right"
    kind = cx.type(x).dtype.name
    x = b.reshape(x, dims=(*cx.dims(x), 1))
    rank = cx.type(boundaries).rank
    if rank > 1:
        dims = cx.dims(boundaries)
        boundaries = b.reshape(boundaries, dims=(*dims[:-1], 1, dims[-1]))
    boundaries = cast(cx, boundaries, kind)
    before = b.le(boundaries, x) if right else b.lt(boundaries, x)
    name = cx.result.dtype.name
    count = b.reduce(b.cast(before, to=name), kind="sum", axes=(cx.type(before).rank - 1,))
    return b.reshape(count, dims=cx.result.dims)


def places_of(cx: Cx, condition: Value, count: Dim) -> Value:
    """Flat positions of the true elements; `count` is torch's symbol for how many there are."""
    b = cx.b
    flat = b.reshape(condition, dims=(cx.type(condition).size,))
    total = b.reduce(b.cast(flat, to="i64"), kind="sum", axes=(0,))
    cx.bind_to(total, count, cx.type(condition).size)
    return b.positions(flat, count=count)


@aten("nonzero")
def nonzero(cx: Cx, x: Value) -> Value:
    """Indices of the elements that are not 0, a row for each."""
    b, dims, (count, rank) = cx.b, cx.dims(x), cx.result.dims
    place = places_of(cx, cast(cx, x, "bool"), count)
    if not rank:
        return b.broadcast(b.scalar(0, "i64"), dims=(count, 0))
    columns = []
    for extent in reversed(dims):
        size = b.dims(dims=(extent,), shape=(), dtype="i64")
        columns.append(b.reshape(b.mod(place, size), dims=(count, 1)))
        place = b.div(place, size)
    return b.concat(*reversed(columns), axis=1) if len(columns) > 1 else columns[0]


@aten("masked_select")
def masked_select(cx: Cx, x: Value, mask: Value) -> Value:
    """The elements where a mask holds."""
    dims = broadcast_dims(cx.dims(x), cx.dims(mask))
    flat = cx.b.reshape(spread(cx, x, dims), dims=(product(dims),))
    place = places_of(cx, spread(cx, mask, dims), cx.result.dims[0])
    return cx.b.gather(flat, place, axis=0)


@aten("nonzero_static")
def nonzero_static(cx: Cx, x: Value, *, size: int, fill_value: int = -1) -> Value:
    """Indices of the first elements that are not 0; a filler where there are fewer."""
    b, dims, count = cx.b, cx.dims(x), cx.result.dims[0]
    if not dims:
        return b.broadcast(b.scalar(0, "i64"), dims=(count, 0))
    flat = b.reshape(cast(cx, x, "bool"), dims=(cx.type(x).size,))
    total = b.reduce(b.cast(flat, to="i64"), kind="sum", axes=(0,))
    place = b.positions(flat, count=count)
    there = b.lt(b.iota(dims=(count,), axis=0), total)
    columns = []
    for extent in reversed(dims):
        length = b.dims(dims=(extent,), shape=(), dtype="i64")
        column = b.select(there, b.mod(place, length), b.scalar(fill_value, "i64"))
        columns.append(b.reshape(column, dims=(count, 1)))
        place = b.div(place, length)
    return b.concat(*reversed(columns), axis=1) if len(columns) > 1 else columns[0]


@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    cx: Cx,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Value, ...]:
    """Sums (mode 0), means (1) or greatest elements (2) of rows of the weights.

    A bag ends where the next one begins. Rows of the padding index do not count; a bag without rows
    gives zeros.
    """
    if any(cx.used(k) for k in (1, 2, 3)):
        cx.fail("bags with more than their rows as results")
    b, kind, dims = cx.b, cx.result.dtype.name, cx.result.dims
    count = cx.type(indices).size
    rows = b.gather(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = b.mul(rows, b.reshape(per_sample_weights, dims=(count, 1)))
    counts = b.ne(cast(cx, indices, "i64"), b.scalar(padding_idx, "i64"))
    counts = b.reshape(counts, dims=(count, 1))
    bag = _bag_of_rows(cx, offsets, count)
    neutral = b.scalar(float("-inf") if mode == 2 else 0, rows)
    rows = b.select(counts, rows, neutral)
    found = _into_bags(cx, neutral, bag, rows, dims, "max" if mode == 2 else "add")
    if mode == 0:
        return found, None, None, None
    ones = b.cast(counts, to=kind)
    size = _into_bags(cx, b.scalar(0, kind), bag, ones, (dims[0], 1), "add")
    if mode == 1:
        return b.div(found, b.max(size, b.scalar(1, size))), None, None, None
    some = b.gt(size, b.scalar(0, size))
    return b.select(some, found, b.scalar(0, found)), None, None, None


def _bag_of_rows(cx: Cx, offsets: Value, count: Dim) -> Value:
    """[count, 1]: the last bag that has begun at every row."""
    b = cx.b
    start = b.reshape(cast(cx, offsets, "i64"), dims=(1, cx.dims(offsets)[0]))
    begun = b.cast(b.le(start, b.iota(dims=(count, 1), axis=0)), to="i64")
    return b.sub(b.reduce(begun, kind="sum", axes=(1,), keepdims=True), b.scalar(1, "i64"))


def _into_bags(
    cx: Cx, start: Value, bag: Value, rows: Value, dims: Sequence[Dim], reduction: str
) -> Value:
    whole = cx.b.broadcast(start, dims=dims)
    place = spread(cx, bag, cx.dims(rows))
    return cx.b.scatter_elements(whole, place, rows, axis=0, reduction=reduction)
