"""The same elements in other shapes and orders, parts of tensors, and tensors joined."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim, SymDim, dim_max, dim_min, known_ge
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import cast
from cuvil.ops.aten.registry import aten
from cuvil.ops.compose.helpers import axis_in

_FAR = 1 << 62  # a bound from here on is the end of the axis


@aten("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims",
      "flatten.using_ints", "unflatten.int", "view_copy", "_reshape_alias", "_reshape_copy",
      "squeeze_copy", "unsqueeze_copy", "squeeze_copy.dim", "squeeze_copy.dims",
      "prims.collapse_view.default", "prims.split_dim.default", "prims.squeeze.default",
      "prims.reshape.default", "prims.collapse.default")  # fmt: skip
def reshape(cx: Cx, x: Value, *_: Value, **__: Value) -> Value:
    """The same elements in row-major order; torch has worked out the extents."""
    dims = cx.result.dims
    return x if cx.dims(x) == dims else cx.b.reshape(x, dims=dims)


@aten("view.dtype")
def view_dtype(cx: Cx, x: Value, dtype: str) -> Value:
    """The bits as another element type of the same width."""
    kind = cx.type(x).dtype
    if kind.size != cx.result.dtype.size:
        cx.fail("a view of bits as elements of another width")
    return cx.b.bitcast(x, of=kind.name, to=dtype)


def transposed(cx: Cx, x: Value, perm: Sequence[int]) -> Value:
    """The axes in another order."""
    rank = cx.type(x).rank
    order = [axis_in(cx, p, rank, "dim") for p in perm]
    return x if order == list(range(rank)) else cx.b.transpose(x, perm=order)


@aten("permute", "permute_copy", "prims.transpose.default")
def permute(cx: Cx, x: Value, dims: Sequence[int]) -> Value:
    """The axes in another order."""
    return transposed(cx, x, dims)


@aten("transpose.int", "swapaxes")
def transpose(cx: Cx, x: Value, dim0: int, dim1: int) -> Value:
    """Two axes changed."""
    rank = cx.type(x).rank
    if not rank:
        return x
    order, a, b = list(range(rank)), dim0 % rank, dim1 % rank
    order[a], order[b] = order[b], order[a]
    return transposed(cx, x, order)


@aten("t", "numpy_T", "mT", "adjoint")
def t(cx: Cx, x: Value) -> Value:
    """The last two axes changed."""
    return transpose(cx, x, -1, -2) if cx.type(x).rank > 1 else x


@aten("expand", "expand_copy", "broadcast_to")
def expand(cx: Cx, x: Value, size: Sequence[Dim], *, implicit: bool = False) -> Value:
    """Extents of 1 repeat."""
    return spread(cx, x, cx.result.dims)


def spread(cx: Cx, x: Value, dims: Sequence[Dim]) -> Value:
    """`x` broadcast to these extents."""
    return x if cx.dims(x) == tuple(dims) else cx.b.broadcast(x, dims=dims)


@aten("prims.broadcast_in_dim.default")
def broadcast_in_dim(
    cx: Cx, x: Value, shape: Sequence[Dim], broadcast_dimensions: Sequence[int]
) -> Value:
    """Axis k of x is axis broadcast_dimensions[k] of the result."""
    dims: list[Dim] = [1] * len(shape)
    for axis, extent in zip(broadcast_dimensions, cx.dims(x), strict=True):
        dims[axis] = extent
    return spread(cx, cx.b.reshape(x, dims=dims), cx.result.dims)


def part(cx: Cx, x: Value, axis: int, start: Dim, extent: Dim, step: int = 1) -> Value:
    """`extent` elements of an axis, from one on."""
    dims = list(cx.dims(x))
    if dims[axis] == extent and step == 1:
        return x
    begin: list[Dim] = [0] * len(dims)
    steps = [1] * len(dims)
    begin[axis], steps[axis], dims[axis] = start, step, extent
    if extent == 0:
        begin[axis] = 0
    return cx.b.slice(x, starts=begin, steps=steps, dims=dims)


def first_of(bound: Dim | None, extent: Dim) -> Dim:
    """A start of a slice counted from the front and held inside the axis."""
    if bound is None:
        return 0
    if isinstance(bound, int) and isinstance(extent, int):
        return max(bound + extent, 0) if bound < 0 else min(bound, extent)
    if isinstance(bound, int) and bound < 0:
        start = extent + bound
        return start if known_ge(start, 0) else dim_max(start, 0)
    return bound if isinstance(bound, int) else dim_min(bound, extent)


@aten("slice.Tensor", "slice_copy.Tensor")
def slice_(
    cx: Cx, x: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: int = 1
) -> Value:
    """x[start:end:step] on an axis; how many there are torch has worked out."""
    axis = axis_in(cx, dim, cx.type(x).rank, "dim")
    first = first_of(start, cx.dims(x)[axis])
    return part(cx, x, axis, first, cx.result.dims[axis], step)


def at(cx: Cx, x: Value, axis: int, index: Dim) -> Value:
    """One place of an axis, which goes."""
    dims = cx.dims(x)
    if isinstance(index, int) and index < 0:
        index = index + dims[axis]
    one = part(cx, x, axis, index, 1)
    return cx.b.reshape(one, dims=[*dims[:axis], *dims[axis + 1 :]])


@aten("select.int", "select_copy.int")
def select(cx: Cx, x: Value, dim: int, index: Dim) -> Value:
    """One place of an axis."""
    return at(cx, x, axis_in(cx, dim, cx.type(x).rank, "dim"), index)


@aten("unbind.int", "unbind_copy.int")
def unbind(cx: Cx, x: Value, dim: int = 0) -> tuple[Value, ...]:
    """Every place of an axis."""
    axis = axis_in(cx, dim, cx.type(x).rank, "dim")
    return tuple(at(cx, x, axis, k) for k in range(len(cx.out)))


def _parts(cx: Cx, x: Value, dim: int) -> tuple[Value, ...]:
    axis = axis_in(cx, dim, cx.type(x).rank, "dim")
    found, first = [], 0
    for kind in cx.out:
        assert kind is not None
        found.append(part(cx, x, axis, first, kind.dims[axis]))
        first = first + kind.dims[axis]  # type: ignore[assignment]
    return tuple(found)


@aten("split.Tensor", "split_with_sizes", "split_copy.Tensor", "split_with_sizes_copy")
def split(cx: Cx, x: Value, sizes: Value, dim: int = 0) -> tuple[Value, ...]:
    """Parts of an axis, one after the other."""
    return _parts(cx, x, dim)


@aten("chunk", "unsafe_chunk", "tensor_split.sections", "unsafe_split.Tensor")
def chunk(cx: Cx, x: Value, chunks: Value, dim: int = 0) -> tuple[Value, ...]:
    """Parts of an axis, one after the other."""
    return _parts(cx, x, dim)


@aten("cat", "prims.cat.default")
def cat(cx: Cx, tensors: Sequence[Value], dim: int = 0) -> Value:
    """The tensors one after the other along an axis; those of shape [0] are nothing."""
    kind, rank = cx.result.dtype.name, cx.result.rank
    kept = [cast(cx, v, kind) for v in tensors if rank == 1 or cx.dims(v) != (0,)]
    axis = axis_in(cx, dim, rank, "dim")
    return cx.b.concat(*kept, axis=axis) if len(kept) > 1 else kept[0]


@aten("stack")
def stack(cx: Cx, tensors: Sequence[Value], dim: int = 0) -> Value:
    """The tensors one after the other along a new axis."""
    axis = axis_in(cx, dim, cx.result.rank, "dim")
    dims = [1 if k == axis else d for k, d in enumerate(cx.result.dims)]
    kind = cx.result.dtype.name
    parts = [cx.b.reshape(cast(cx, v, kind), dims=dims) for v in tensors]
    return cx.b.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


@aten("flip", "prims.rev.default")
def flip(cx: Cx, x: Value, dims: Sequence[int]) -> Value:
    """These axes from back to front."""
    extents = cx.dims(x)
    axes = {axis_in(cx, d, len(extents), "dim") for d in dims}
    if not axes or cx.type(x).size == 0:
        return x
    starts: list[Dim] = [d - 1 if k in axes else 0 for k, d in enumerate(extents)]
    return cx.b.slice(
        x, starts=starts, steps=[-1 if k in axes else 1 for k in range(len(extents))], dims=extents
    )


@aten("repeat", "tile")
def repeat(cx: Cx, x: Value, repeats: Sequence[Dim]) -> Value:
    """The tensor repeated along every axis."""
    dims = [*[1] * (len(repeats) - cx.type(x).rank), *cx.dims(x)]
    times = [*[1] * (len(dims) - len(repeats)), *repeats]
    apart = [d for dim in dims for d in (1, dim)]
    spread_ = [d for dim, n in zip(dims, times, strict=True) for d in (n, dim)]
    whole = cx.b.broadcast(cx.b.reshape(x, dims=apart), dims=spread_)
    return cx.b.reshape(whole, dims=cx.result.dims)


@aten("roll")
def roll(cx: Cx, x: Value, shifts: Sequence[Dim], dims: Sequence[int] = ()) -> Value:
    """Elements that leave an axis at its end come in at its front."""
    if not dims:
        flat = cx.b.reshape(x, dims=(cx.type(x).size,))
        return cx.b.reshape(_rolled(cx, flat, shifts[0], 0), dims=cx.dims(x))
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(cx, x, shift, axis_in(cx, dim, cx.type(x).rank, "dim"))
    return x


def _rolled(cx: Cx, x: Value, shift: Dim, axis: int) -> Value:
    extent = cx.dims(x)[axis]
    if extent == 0:
        return x
    tail = shift % extent
    if tail == 0:
        return x
    parts = part(cx, x, axis, extent - tail, tail), part(cx, x, axis, 0, extent - tail)
    return cx.b.concat(*parts, axis=axis)


@aten("diagonal", "diagonal_copy")
def diagonal(cx: Cx, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """The places of two axes whose indices differ by the offset, as a last axis."""
    rank = cx.type(x).rank
    rows, columns = dim1 % rank, dim2 % rank
    rest = [k for k in range(rank) if k not in (rows, columns)]
    moved = transposed(cx, x, [*rest, rows, columns])
    dims, width = cx.dims(moved), cx.dims(moved)[-1]
    count = cx.result.dims[-1]
    if count == 0:
        return cx.b.broadcast(cx.b.scalar(0, x), dims=cx.result.dims)
    flat = cx.b.reshape(moved, dims=[*dims[:-2], dims[-2] * dims[-1]])
    return cx.b.gather(flat, diagonal_places(cx, width, count, offset), axis=rank - 2)


def diagonal_places(cx: Cx, width: Dim, count: Dim, offset: int) -> Value:
    """Where the elements of a diagonal are in a flattened matrix with rows of this width."""
    b = cx.b
    first = offset if offset >= 0 else -offset * width
    step = b.dims(dims=(width + 1,), shape=(), dtype="i64")
    row = b.iota(dims=(count,), axis=0)
    return b.add(b.mul(row, step), b.dims(dims=(first,), shape=(), dtype="i64"))


@aten("unfold", "unfold_copy")
def unfold(cx: Cx, x: Value, dimension: int, size: Dim, step: int) -> Value:
    """Windows of an axis; the places in a window are a last axis."""
    rank = cx.type(x).rank
    if not rank:
        return cx.b.broadcast(x, dims=cx.result.dims)
    axis = axis_in(cx, dimension, rank, "dimension")
    count = cx.result.dims[axis]
    start = cx.b.mul(cx.b.iota(dims=(count, 1), axis=0), cx.b.scalar(step, "i64"))
    place = cx.b.add(start, cx.b.iota(dims=(1, size), axis=1))
    windows = cx.b.gather(x, place, axis=axis)
    order = [k for k in range(rank + 1) if k != axis + 1]
    return cx.b.transpose(windows, perm=[*order, axis + 1])


def _is_open(bound: Dim | None) -> bool:
    return bound is None or (not isinstance(bound, SymDim) and bound >= _FAR)


@aten("slice_scatter")
def slice_scatter(
    cx: Cx,
    x: Value,
    source: Value,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: int = 1,
) -> Value:
    """A copy of x with x[start:end:step] replaced."""
    b, axis = cx.b, axis_in(cx, dim, cx.type(x).rank, "dim")
    extent, count = cx.dims(x)[axis], cx.dims(source)[axis]
    source = cast(cx, source, cx.type(x).dtype.name)
    first = first_of(start, extent)
    if count == 0:
        return x
    if first == 0 and count == extent:
        return source
    if step == 1:
        after = first + count
        parts = [part(cx, x, axis, 0, first), source, part(cx, x, axis, after, extent - after)]
        kept = [v for v in parts if cx.dims(v)[axis] != 0]
        return b.concat(*kept, axis=axis) if len(kept) > 1 else kept[0]
    place = b.add(
        b.mul(b.iota(dims=(count,), axis=0), b.scalar(step, "i64")),
        b.dims(dims=(first,), shape=(), dtype="i64"),
    )
    index = b.reshape(place, dims=[count if k == axis else 1 for k in range(cx.type(x).rank)])
    return b.scatter_elements(x, spread(cx, index, cx.dims(source)), source, axis=axis)


@aten("select_scatter")
def select_scatter(cx: Cx, x: Value, source: Value, dim: int, index: Dim) -> Value:
    """A copy of x with one place of an axis replaced."""
    axis = axis_in(cx, dim, cx.type(x).rank, "dim")
    dims = list(cx.dims(x))
    where = index + dims[axis] if isinstance(index, int) and index < 0 else index
    dims[axis] = 1
    return slice_scatter(cx, x, cx.b.reshape(source, dims=dims), axis, where)
