"""Max pooling that also tells where every maximum was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.lowering import KernelCx, lowest
from cuvil.ops.pool import WINDOW, check_window, over_window, pick, taps, window_index


def _argmax_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if a.layout != "channels_first":
        raise ValueError("pool_argmax takes channels first: its indices count in that order")
    result = check_window("pool_argmax", t, a)
    return [result, result.with_dtype("i64")]


def _argmax(x: Sequence[Any], a: Attrs) -> list[Any]:
    data, sizes = x[0], x[0].shape[2:]
    best = np.full((*data.shape[:2], *a.out), lowest(from_numpy(data.dtype)), data.dtype)
    where = np.zeros(best.shape, np.int64)
    for _, at, found in taps(data, a):
        value = pick(data, at, found, lowest(from_numpy(data.dtype)))
        better = found & ((value > best) | ((value != value) & (best == best)))
        where = np.where(better, _flat(np.ix_(*at), sizes, a.storage_order), where)
        best = np.where(better, value, best)
    plane = int(np.prod(sizes))
    planes = np.arange(data.shape[0] * data.shape[1]) * plane
    return [best, where + planes.reshape([*data.shape[:2], *[1] * len(sizes)])]


def _flat(at: Sequence[Any], sizes: Sequence[int], storage_order: int) -> Any:
    pairs = list(zip(at, sizes, strict=True))
    position: Any = 0
    for p, n in reversed(pairs) if storage_order else pairs:
        position = position * n + p
    return position


def _argmax_kernel(cx: KernelCx) -> None:
    b, dims = cx.b, cx.result_type.dims
    at = cx.tasks(dims[:-1])
    with b.loop(0, b.dim(dims[-1]), kind="parallel") as loop:
        index = [*at, loop.iv]
        best, where = _best(cx, index)
        cx.store(best, index, 0)
        cx.store(where, index, 1)


def _best(cx: KernelCx, index: Sequence[Index]) -> tuple[Value, ...]:
    b, (source,) = cx.b, cx.operand_types
    name, sizes = source.dtype.name, source.dims[2:]

    def step(tap: Sequence[Index], best: Value, where: Value) -> Sequence[Value]:
        found, place = window_index(cx, index, tap)
        value = cx.operand(0, place)
        better = b.scalar("gt", value, best, result="bool")
        if source.dtype.is_float:
            new, old = (b.scalar("isnan", v, result="bool") for v in (value, best))
            better = b.scalar("or", better, b.scalar("and", new, b.scalar("not", old)))
        if found is not None:
            better = b.scalar("and", found, better)
        order = reversed(range(len(sizes))) if cx.attrs.storage_order else range(len(sizes))
        axes = list(order)
        flat = b.flatten([place[2 + i] for i in axes], [sizes[i] for i in axes])
        whole = b.add(b.mul(b.flatten(index[:2], source.dims[:2]), _plane(cx, sizes)), flat)
        position = b.from_index(whole, "i64")
        return [
            b.scalar("select", better, value, best, result=name),
            b.scalar("select", better, position, where, result="i64"),
        ]

    none = b.mul(b.flatten(index[:2], source.dims[:2]), _plane(cx, sizes))
    start = [b.const(lowest(source.dtype), name), b.from_index(none, "i64")]
    return over_window(cx, start, step)


def _plane(cx: KernelCx, sizes: Sequence[Dim]) -> Index:
    size: Index = 1
    for extent in sizes:
        size = cx.b.mul(size, cx.b.dim(extent))
    return size


POOL_ARGMAX = Primitive(
    name="pool_argmax",  # max pool; where in x, flat, every maximum is (the first of equals)
    infer=_argmax_type,
    evaluate=_argmax,
    attrs={**WINDOW, "storage_order": Attr("int", 0)},
    kernel=_argmax_kernel,
    tags=frozenset({"anchor"}),
    computes=True,
).register()
