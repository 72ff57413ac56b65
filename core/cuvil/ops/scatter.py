"""A copy of a tensor with elements replaced, or combined, by index. Later updates win."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, bounds
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.gather import (
    bounded_index,
    check_index_type,
    check_inside,
    index_depth,
    open_grid,
)
from cuvil.ops.lowering import KernelCx, axis_in, for_each

REDUCTIONS = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_ATTRS = {"reduction": Attr("str", "none")}
_TAGS = frozenset({"anchor", "scatter", "dense"})


def _check(what: str, t: Sequence[TensorType], a: Attrs) -> None:
    if len(t) != 3 or t[0].dtype != t[2].dtype:
        raise ValueError(f"{what} takes data, indices and updates of its dtype, not {shapes(t)}")
    check_index_type(what, t[1])
    if a.reduction not in REDUCTIONS:
        raise ValueError(f"{what}: unknown reduction '{a.reduction}'")
    kind = t[0].dtype
    if a.reduction != "none" and (kind.kind in ("bool", "string") or kind.is_narrow):
        raise ValueError(f"{what}: {t[0].dtype} cannot be combined by '{a.reduction}'")


def _same(what: str, got: Sequence[Dim], want: Sequence[Dim]) -> None:
    """ValueError where two lists of dims differ for certain."""
    pairs = list(zip(got, want, strict=False))
    if len(got) != len(want) or any(
        isinstance(g, int) and isinstance(w, int) and g != w for g, w in pairs
    ):
        raise ValueError(f"{what}: updates are {list(map(str, got))}, not {list(map(str, want))}")


def _update(data: Any, place: tuple[Any, ...], updates: Any, reduction: str) -> list[Any]:
    result = np.array(data)
    ufunc = REDUCTIONS[reduction]
    if ufunc is None:
        result[place] = updates
    else:
        ufunc.at(result, place, updates)
    return [result]


def _copy(cx: KernelCx) -> None:
    """The data, where nothing is scattered."""
    b, dims = cx.b, cx.result_type.dims

    def one(index: tuple[Index, ...]) -> None:
        b.store(cx.operand(0, index), cx.result_buffer(), b.flatten(index, dims))

    for_each(b, dims, one)


def _where_any(cx: KernelCx, extents: Sequence[Dim], body: Callable[[], None]) -> None:
    """Builds `body` so that it runs unless one of the indexed axes is empty."""
    if all((bounds(d)[0] or 0) > 0 for d in extents):
        body()
        return
    b, some = cx.b, cx.b.dim(1)
    for extent in extents:
        some = b.index("min", some, b.dim(extent))
    with b.loop(0, some):
        body()


def _combine(cx: KernelCx, index: Sequence[Index], value: Value) -> None:
    """Puts one update into its place."""
    b, fn = cx.b, cx.attrs.reduction
    offset = b.flatten(index, cx.result_type.dims)
    if fn != "none":
        value = b.scalar(fn, b.load(cx.result_buffer(), offset), value)
    b.store(value, cx.result_buffer(), offset)


def _elements_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    _check("scatter_elements", t, a)
    axis = axis_in(a.axis, t[0].rank, "scatter_elements")
    check_inside("scatter_elements", t[1].dims, t[0].dims, axis)
    _same("scatter_elements", t[2].dims, t[1].dims)
    return [t[0]]


def _elements(x: Sequence[Any], a: Attrs) -> list[Any]:
    grid = open_grid(x[1].shape)
    grid[a.axis] = x[1]
    return _update(x[0], tuple(grid), x[2], a.reduction)


def _elements_kernel(cx: KernelCx) -> None:
    _copy(cx)
    axis = cx.attrs.axis
    extent = cx.operand_types[0].dims[axis]

    def one(index: tuple[Index, ...]) -> None:
        at = bounded_index(cx.b, cx.operand(1, index), extent)
        place = [*index[:axis], at, *index[axis + 1 :]]
        _where_any(cx, [extent], lambda: _combine(cx, place, cx.operand(2, index)))

    for_each(cx.b, cx.operand_types[1].dims, one, kind="")


SCATTER_ELEMENTS = Primitive(
    name="scatter_elements",  # result[.., indices[.., i, ..], ..] = updates[.., i, ..] on `axis`
    infer=_elements_type,
    evaluate=_elements,
    attrs={"axis": Attr("int", 0), **_ATTRS},
    kernel=_elements_kernel,
    tags=_TAGS,
).register()


def _nd_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    _check("scatter_nd", t, a)
    depth = index_depth("scatter_nd", t[1], t[0].rank, 0)
    _same("scatter_nd", t[2].dims, [*t[1].dims[:-1], *t[0].dims[depth:]])
    return [t[0]]


def _nd(x: Sequence[Any], a: Attrs) -> list[Any]:
    columns = tuple(x[1][..., j] for j in range(x[1].shape[-1]))
    if columns:
        return _update(x[0], columns, x[2], a.reduction)
    result = x[0]
    for update in x[2].reshape(-1, *x[0].shape):
        (result,) = _update(result, (...,), update, a.reduction)
    return [result]


def _nd_kernel(cx: KernelCx) -> None:
    _copy(cx)
    b, (data, indices, _) = cx.b, cx.operand_types
    depth = index_depth("scatter_nd", indices, data.rank, 0)

    def row(index: tuple[Index, ...]) -> None:
        at = [bounded_index(b, cx.operand(1, [*index, j]), data.dims[j]) for j in range(depth)]

        def element(rest: tuple[Index, ...]) -> None:
            _combine(cx, [*at, *rest], cx.operand(2, [*index, *rest]))

        _where_any(cx, data.dims[:depth], lambda: for_each(b, data.dims[depth:], element))

    for_each(b, indices.dims[:-1], row, kind="")


SCATTER_ND = Primitive(
    name="scatter_nd",  # the last dim of the indices holds tuples that name leading axes
    infer=_nd_type,
    evaluate=_nd,
    attrs=_ATTRS,
    kernel=_nd_kernel,
    tags=_TAGS,
).register()
