"""Tensors one after another along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import ElementCx, KernelCx, axis_in, for_each


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if not t or len({(k.rank, k.dtype) for k in t}) != 1:
        raise ValueError(f"concat needs tensors of one rank and dtype, not {shapes(t)}")
    axis = axis_in(a.axis, t[0].rank, "concat")
    dims: list[Dim] = list(t[0].dims)
    for kind in t[1:]:
        for i, d in enumerate(kind.dims):
            if i == axis:
                dims[i] = dims[i] + d
            elif isinstance(d, int) and isinstance(dims[i], int) and d != dims[i]:
                raise ValueError(f"concat: dimension {i} is {dims[i]} and {d}")
            elif isinstance(d, int):
                dims[i] = d
    return [t[0].with_dims(dims)]


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    """A chain of branches over the parts; the planner writes parts in place instead."""
    b, axis = cx.b, cx.attrs.axis
    starts = _starts(cx)

    def part(i: int) -> Value:
        at = b.sub(index[axis], b.dim(starts[i]))
        return cx.operand(i, [*index[:axis], at, *index[axis + 1 :]])

    def choose(i: int) -> Value:
        if i == len(starts) - 1:
            return part(i)
        before = b.compare("lt", index[axis], b.dim(starts[i + 1]))
        return b.if_(before, lambda: part(i), lambda: choose(i + 1))

    return choose(0)


def _starts(cx: ElementCx) -> list[Dim]:
    """Where every part starts on the axis."""
    sizes = [t.dims[cx.attrs.axis] for t in cx.operand_types]
    return reduce(lambda starts, size: [*starts, starts[-1] + size], sizes[:-1], [0])


def _kernel(cx: KernelCx) -> None:
    axis = cx.attrs.axis
    at = cx.tasks(cx.result_type.dims[:axis])
    for i, start in enumerate(_starts(cx)):
        _copy(cx, i, start, at)


def _copy(cx: KernelCx, i: int, start: Dim, at: Sequence[Index]) -> None:
    b = cx.b

    def one(inner: tuple[Index, ...]) -> None:
        value = cx.operand(i, [*at, *inner])
        cx.store(value, [*at, b.add(b.dim(start), inner[0]), *inner[1:]])

    for_each(b, cx.operand_types[i].dims[cx.attrs.axis :], one)


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    return [np.concatenate(x, a.axis)]


CONCAT = Primitive(
    name="concat",
    infer=_infer,
    evaluate=_evaluate,
    attrs={"axis": Attr("int")},
    element=_element,
    kernel=_kernel,
    tags=frozenset({"view"}),
).register()
