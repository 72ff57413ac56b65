"""Primitives that only move elements: transpose, reshape, slice, pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import product
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.lowering import ElementCx

VIEW = frozenset({"view"})


def _transpose_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if sorted(a.perm) != list(range(t[0].rank)):
        raise ValueError(f"perm {list(a.perm)} is not a permutation of {t[0].rank} axes")
    return [t[0].with_dims(t[0].dims[p] for p in a.perm)]


def _transpose_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    source: list[Index] = [0] * len(index)
    for i, p in zip(index, cx.attrs.perm, strict=True):
        source[p] = i
    return cx.operand(0, source)


TRANSPOSE = Primitive(
    name="transpose",  # result dim i is operand dim perm[i]
    infer=_transpose_type,
    evaluate=lambda x, a: [np.transpose(x[0], a.perm)],
    attrs={"perm": Attr("ints")},
    element=_transpose_element,
    tags=VIEW,
).register()


def _reshape_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    have, want = t[0].size, product(a.dims)
    if isinstance(have, int) and isinstance(want, int) and have != want:
        raise ValueError(f"cannot reshape {have} elements to {list(map(str, a.dims))}")
    return [t[0].with_dims(a.dims)]


def _reshape_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    flat = cx.b.flatten(index, cx.result_type.dims)
    return cx.operand(0, cx.b.unflatten(flat, cx.operand_types[0].dims))


RESHAPE = Primitive(
    name="reshape",  # same elements in row-major order
    infer=_reshape_type,
    evaluate=lambda x, a: [np.reshape(x[0], a.dims)],
    attrs={"dims": Attr("dims")},
    element=_reshape_element,
    tags=VIEW | {"reshape"},
).register()


def _slice_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if not len(a.starts) == len(a.steps) == len(a.dims) == t[0].rank:
        raise ValueError("slice needs a start, a step and an extent for every axis")
    for axis, (d, start, step, n) in enumerate(
        zip(t[0].dims, a.starts, a.steps, a.dims, strict=True)
    ):
        if isinstance(n, int) and n < 0:
            raise ValueError(f"slice: {n} elements of axis {axis}")
        if isinstance(d, int) and isinstance(start, int) and isinstance(n, int) and n:
            last = start + step * (n - 1)
            if not (0 <= start < d and 0 <= last < d):
                raise ValueError(f"slice: elements {start} to {last} of axis {axis} of {d}")
    return [t[0].with_dims(a.dims)]


def _slice_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    b = cx.b
    source = [
        b.add(b.dim(start), b.mul(i, step))
        for i, start, step in zip(index, cx.attrs.starts, cx.attrs.steps, strict=True)
    ]
    return cx.operand(0, source)


def _slice(x: Sequence[Any], a: Attrs) -> list[Any]:
    grids = [
        start + step * np.arange(n)
        for start, step, n in zip(a.starts, a.steps, a.dims, strict=True)
    ]
    for axis, (grid, extent) in enumerate(zip(grids, x[0].shape, strict=True)):
        if grid.size and not (grid.min() >= 0 and grid.max() < extent):
            raise ValueError(f"slice: elements {grid[0]} to {grid[-1]} of axis {axis} of {extent}")
    return [x[0][np.ix_(*grids)] if grids else x[0]]


SLICE = Primitive(
    name="slice",  # element i of an axis is operand element start + step * i; steps may be < 0
    infer=_slice_type,
    evaluate=_slice,
    attrs={"starts": Attr("dims"), "steps": Attr("ints"), "dims": Attr("dims")},
    element=_slice_element,
    tags=VIEW,
).register()
