"""Elements by index. A negative index counts from the end; one outside its axis fails the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.lowering import ElementCx, axis_in, clamp, where_any

INDEX_OUT_OF_RANGE = 9  # CUVIL_INDEX_OUT_OF_RANGE of cuvil/abi.h


def check_index_type(what: str, kind: TensorType) -> None:
    """ValueError unless a tensor can hold indices."""
    if kind.dtype.name not in ("i32", "i64"):
        raise ValueError(f"{what}: indices are {kind.dtype.name}, not i32 or i64")


def bounded_index(b: NestBuilder, value: Value, extent: Dim) -> Index:
    """An index element as an index in [0, extent), 0 for an extent of 0.

    A negative one counts from the end. One outside fails the kernel and is clamped.
    """
    at, size = b.cast(value, "i64"), b.from_index(b.dim(extent), "i64")
    zero = b.const(0, "i64")
    negative = b.scalar("lt", at, zero, result="bool")
    at = b.scalar("select", negative, b.scalar("add", at, size), at, result="i64")
    low = b.scalar("lt", at, zero, result="bool")
    high = b.scalar("ge", at, size, result="bool")
    b.fail_if(b.scalar("or", low, high), INDEX_OUT_OF_RANGE)
    return clamp(b, b.to_index(at), extent)


def _gather_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    check_index_type("gather", t[1])
    axis = axis_in(a.axis, t[0].rank, "gather")
    return [t[0].with_dims([*t[0].dims[:axis], *t[1].dims, *t[0].dims[axis + 1 :]])]


def _gather_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    axis, (data, indices) = cx.attrs.axis, cx.operand_types
    end = axis + indices.rank
    at = bounded_index(cx.b, cx.operand(1, index[axis:end]), data.dims[axis])
    place = [*index[:axis], at, *index[end:]]
    return where_any(cx.b, [data.dims[axis]], data.dtype.name, lambda: cx.operand(0, place))


GATHER = Primitive(
    name="gather",  # slices of x along `axis`, which the dims of the indices replace
    infer=_gather_type,
    evaluate=lambda x, a: [np.take(x[0], x[1], a.axis)],
    attrs={"axis": Attr("int", 0)},
    element=_gather_element,
    tags=frozenset({"gather"}),
).register()


def _elements_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    check_index_type("gather_elements", t[1])
    axis = axis_in(a.axis, t[0].rank, "gather_elements")
    check_inside("gather_elements", t[1].dims, t[0].dims, axis)
    return [t[0].with_dims(t[1].dims)]


def check_inside(what: str, inner: Sequence[Dim], outer: Sequence[Dim], axis: int) -> None:
    """ValueError unless indices have the data's rank and, but for the axis, lie inside it."""
    if len(inner) != len(outer):
        raise ValueError(f"{what}: indices of rank {len(inner)} into rank {len(outer)}")
    for i, (small, large) in enumerate(zip(inner, outer, strict=True)):
        if i != axis and isinstance(small, int) and isinstance(large, int) and small > large:
            raise ValueError(f"{what}: dimension {i} of the indices is {small}, beyond {large}")


def open_grid(shape: Sequence[int]) -> list[Any]:
    """Positions along every axis, shaped to broadcast to `shape`."""
    return list(np.ogrid[tuple(slice(n) for n in shape)])


def _elements(x: Sequence[Any], a: Attrs) -> list[Any]:
    grid = open_grid(x[1].shape)
    grid[a.axis] = x[1]
    return [x[0][tuple(grid)]]


def _elements_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    axis, data = cx.attrs.axis, cx.operand_types[0]
    at = bounded_index(cx.b, cx.operand(1, index), data.dims[axis])
    place = [*index[:axis], at, *index[axis + 1 :]]
    return where_any(cx.b, [data.dims[axis]], data.dtype.name, lambda: cx.operand(0, place))


GATHER_ELEMENTS = Primitive(
    name="gather_elements",  # result[.., i, ..] = x[.., indices[.., i, ..], ..] on `axis`
    infer=_elements_type,
    evaluate=_elements,
    attrs={"axis": Attr("int", 0)},
    element=_elements_element,
    tags=frozenset({"gather"}),
).register()


def index_depth(what: str, indices: TensorType, rank: int, batch: int) -> int:
    """How many axes an index tuple names (its last, static dim); ValueError where it cannot be."""
    depth = indices.dims[-1] if indices.rank else None
    if not isinstance(depth, int):
        raise ValueError(f"{what}: the last dimension of the indices must be a known number")
    if not 0 <= batch < indices.rank or batch + depth > rank:
        raise ValueError(f"{what}: {depth} indices after {batch} batch axes of rank {rank}")
    return depth


def _nd_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    check_index_type("gather_nd", t[1])
    depth = index_depth("gather_nd", t[1], t[0].rank, a.batch_dims)
    return [t[0].with_dims([*t[1].dims[:-1], *t[0].dims[a.batch_dims + depth :]])]


def _nd(x: Sequence[Any], a: Attrs) -> list[Any]:
    data, indices = x
    batch, rows = a.batch_dims, indices.shape[:-1]
    grid = open_grid(rows)[:batch]
    columns = [indices[..., j] for j in range(indices.shape[-1])]
    if not grid and not columns:
        return [np.broadcast_to(data, (*rows, *data.shape))]
    whole = [np.broadcast_to(g, rows) for g in grid]
    return [data[(*whole, *columns)]]


def _nd_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b, (data, indices), batch = cx.b, cx.operand_types, cx.attrs.batch_dims
    depth = index_depth("gather_nd", indices, data.rank, batch)
    row, rest = index[: indices.rank - 1], index[indices.rank - 1 :]
    extents = data.dims[batch : batch + depth]
    at = [bounded_index(b, cx.operand(1, [*row, j]), extent) for j, extent in enumerate(extents)]
    place = [*index[:batch], *at, *rest]
    return where_any(b, extents, data.dtype.name, lambda: cx.operand(0, place))


GATHER_ND = Primitive(
    name="gather_nd",  # the last dim of the indices holds tuples that name leading axes of x
    infer=_nd_type,
    evaluate=_nd,
    attrs={"batch_dims": Attr("int", 0)},
    element=_nd_element,
    tags=frozenset({"gather"}),
).register()
