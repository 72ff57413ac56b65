"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import ceil_div
from cuvil.ir.dtypes import DType, from_numpy
from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.lowering import BLOCK, KernelCx, axis_in, block_room, highest, lowest
from cuvil.ops.scalar_meaning import cast

_STEP = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
_SCANS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _carried(kind: DType) -> str:
    """The type of the totals: floats keep the accuracy of their terms in f64."""
    return "f64" if kind.is_float else kind.compute.name


def _neutral(kind: str, dtype: DType) -> float | int:
    """The total of no elements."""
    if kind in ("max", "min"):
        return lowest(dtype) if kind == "max" else highest(dtype)
    return 0 if kind == "sum" else 1


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    axis_in(a.axis, t[0].rank, "cumulative")
    if a.kind not in _STEP or t[0].dtype.kind == "bool":
        raise ValueError(f"cumulative '{a.kind}' of {t[0].dtype.name} does not exist")
    return [t[0]]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    data = np.flip(x[0], a.axis) if a.reverse else x[0]
    carried = dtype_of(_carried(from_numpy(x[0].dtype)))
    result = _SCANS[a.kind].accumulate(data.astype(carried.numpy), a.axis, carried.numpy)
    if a.exclusive and result.shape[a.axis]:
        first = np.full_like(np.take(result, [0], a.axis), _neutral(a.kind, carried))
        keep = np.take(result, range(result.shape[a.axis] - 1), a.axis)
        result = np.concatenate([first, keep], a.axis)
    result = cast(result, from_numpy(x[0].dtype).name)
    return [np.flip(result, a.axis) if a.reverse else result]


def _step(cx: KernelCx, total: Value, index: Sequence[Index]) -> Value:
    """Stores one element of the result and gives the new total."""
    b = cx.b
    value = b.cast(cx.operand(0, index), _carried(cx.operand_types[0].dtype))
    after = b.scalar(_STEP[cx.attrs.kind], total, value)
    shown = total if cx.attrs.exclusive else after
    cx.store(b.cast(shown, cx.result_type.dtype.name), index)
    return after


def _position(cx: KernelCx, step: Index) -> Index:
    if not cx.attrs.reverse:
        return step
    b = cx.b
    return b.sub(b.sub(b.dim(cx.result_type.dims[cx.attrs.axis]), 1), step)


def _kernel(cx: KernelCx) -> None:
    if cx.attrs.axis == cx.result_type.rank - 1:
        _along_rows(cx)
    else:
        _across_rows(cx)


def _start(cx: KernelCx) -> Value:
    name = _carried(cx.operand_types[0].dtype)
    return cx.b.const(_neutral(cx.attrs.kind, dtype_of(name)), name)


def _along_rows(cx: KernelCx) -> None:
    dims = cx.result_type.dims
    at = cx.tasks(dims[:-1])
    with cx.b.loop(0, cx.b.dim(dims[-1]), [_start(cx)]) as loop:
        loop.yield_(_step(cx, loop.args[0], [*at, _position(cx, loop.iv)]))


def _across_rows(cx: KernelCx) -> None:
    """The last axis is another: a block of its totals is carried in scratch."""
    b, dims, axis = cx.b, cx.result_type.dims, cx.attrs.axis
    outer = [d for k, d in enumerate(dims[:-1]) if k != axis]
    *at, block = cx.tasks([*outer, ceil_div(dims[-1], BLOCK)])
    first = b.mul(block, BLOCK)
    count = b.index("min", b.sub(b.dim(dims[-1]), first), BLOCK)
    totals = cx.scratch(block_room(dims[-1]), _carried(cx.operand_types[0].dtype))
    with b.loop(0, count, kind="parallel") as row:
        totals.store(_start(cx), row.iv)
    with b.loop(0, b.dim(dims[axis])) as steps:
        position = _position(cx, steps.iv)
        with b.loop(0, count, kind="parallel") as row:
            index = [*at[:axis], position, *at[axis:], b.add(first, row.iv)]
            totals.store(_step(cx, totals.load(row.iv), index), row.iv)


CUMULATIVE = Primitive(
    name="cumulative",  # exclusive: element i is not part of its own total; reverse: from the end
    infer=_infer,
    evaluate=_evaluate,
    attrs={
        "kind": Attr("str", "sum"),
        "axis": Attr("int"),
        "exclusive": Attr("bool", False),
        "reverse": Attr("bool", False),
    },
    kernel=_kernel,
    tags=frozenset({"anchor"}),
    tolerance=1e-5,
    computes=True,
).register()
