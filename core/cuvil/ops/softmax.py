"""Softmax and its logarithm along one axis, shifted by the greatest element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import ceil_div
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import BLOCK, KernelCx, axis_in, block_room, for_each, loops


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) != 1 or not t[0].dtype.is_float:
        raise ValueError(f"softmax does not take {shapes(t)}")
    axis_in(a.axis, t[0].rank, "softmax")
    return [t[0]]


def _evaluate(logarithmic: bool, x: Sequence[Any], a: Attrs) -> list[Any]:
    data = x[0].astype(np.float64)
    data = data - data.max(a.axis, keepdims=True, initial=-np.inf)
    e = np.exp(data)
    total = e.sum(a.axis, keepdims=True)
    return [(data - np.log(total) if logarithmic else e / total).astype(x[0].dtype)]


def _kernel(logarithmic: bool, cx: KernelCx) -> None:
    if cx.attrs.axis == cx.result_type.rank - 1:
        _row(cx, logarithmic)
    else:
        _columns(cx, logarithmic)


def _element(cx: KernelCx, index: Sequence[Index]) -> Value:
    return cx.b.cast(cx.operand(0, index), cx.result_type.dtype.compute.name)


def _row(cx: KernelCx, logarithmic: bool) -> None:
    """Three walks over a contiguous row kept in scratch: greatest, exponentials, quotient."""
    b, dims, name = cx.b, cx.result_type.dims, cx.result_type.dtype.compute.name
    at, extent = cx.tasks(dims[:-1]), [dims[-1]]
    row = cx.scratch(dims[-1], name)

    def greatest(i: tuple[Index, ...], best: Value) -> Sequence[Value]:
        value = _element(cx, [*at, *i])
        row.store(value, i[0])
        return [b.scalar("max", best, value)]

    (best,) = loops(b, extent, [b.const(float("-inf"), name)], greatest)

    def exponential(i: tuple[Index, ...], total: Value) -> Sequence[Value]:
        shifted = b.scalar("sub", row.load(i[0]), best)
        e = b.scalar("exp", shifted)
        row.store(shifted if logarithmic else e, i[0])
        return [b.scalar("add", total, e)]

    (total,) = loops(b, extent, [b.const(0, name)], exponential)
    factor = b.scalar("log" if logarithmic else "reciprocal", total)

    def last(i: tuple[Index, ...]) -> None:
        value = b.scalar("sub" if logarithmic else "mul", row.load(i[0]), factor)
        cx.store(b.cast(value, cx.result_type.dtype.name), [*at, *i])

    for_each(b, extent, last)


def _columns(cx: KernelCx, logarithmic: bool) -> None:
    """Another axis than the last: a block of the last axis at a time, exponentials twice."""
    b, dims, axis = cx.b, cx.result_type.dims, cx.attrs.axis
    name = cx.result_type.dtype.compute.name
    outer = [d for k, d in enumerate(dims[:-1]) if k != axis]
    *at, block = cx.tasks([*outer, ceil_div(dims[-1], BLOCK)])
    first = b.mul(block, BLOCK)
    count = b.index("min", b.sub(b.dim(dims[-1]), first), BLOCK)
    room = block_room(dims[-1])
    best, total = cx.scratch(room, name), cx.scratch(room, name)

    def along(body: Callable[[Index], None]) -> None:
        with b.loop(0, count, kind="parallel") as row:
            body(row.iv)

    def walk(body: Callable[[Index, Sequence[Index]], None]) -> None:
        with b.loop(0, b.dim(dims[axis])) as steps:
            along(lambda r: body(r, [*at[:axis], steps.iv, *at[axis:], b.add(first, r)]))

    def shifted(r: Index, index: Sequence[Index]) -> Value:
        return b.scalar("sub", _element(cx, index), best.load(r))

    along(lambda r: best.store(b.const(float("-inf"), name), r))
    walk(lambda r, i: best.store(b.scalar("max", best.load(r), _element(cx, i)), r))
    along(lambda r: total.store(b.const(0, name), r))
    walk(lambda r, i: total.store(_added(cx, total.load(r), shifted(r, i)), r))
    along(lambda r: total.store(b.scalar("log" if logarithmic else "reciprocal", total.load(r)), r))

    def last(r: Index, index: Sequence[Index]) -> None:
        value = shifted(r, index)
        if logarithmic:
            value = b.scalar("sub", value, total.load(r))
        else:
            value = b.scalar("mul", b.scalar("exp", value), total.load(r))
        cx.store(b.cast(value, cx.result_type.dtype.name), index)

    walk(last)


def _added(cx: KernelCx, total: Value, shifted: Value) -> Value:
    return cx.b.scalar("add", total, cx.b.scalar("exp", shifted))


def _record(name: str, logarithmic: bool) -> Primitive:
    return Primitive(
        name=name,
        infer=_infer,
        evaluate=partial(_evaluate, logarithmic),
        attrs={"axis": Attr("int")},
        kernel=partial(_kernel, logarithmic),
        tags=frozenset({"anchor", "norm"}),
        tolerance=1e-5,
        computes=True,
    ).register()


SOFTMAX = _record("softmax", False)
LOG_SOFTMAX = _record("log_softmax", True)
