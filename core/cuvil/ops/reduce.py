"""Reductions over axes, and the position of the greatest or least element of an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, ceil_div, product
from cuvil.ir.dtypes import DType, from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.lowering import (
    BLOCK,
    ElementCx,
    KernelCx,
    axis_in,
    block_room,
    element_dtype,
    for_each,
    highest,
    loops,
    lowest,
    wide,
)

KINDS = ("sum", "prod", "max", "min", "mean", "any", "all")
SHORT_SUM = 16  # rows
_STEP = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min", "any": "or",
         "all": "and"}  # fmt: skip


def neutral(kind: str, dtype: DType) -> float | int | bool:
    """What a reduction of no elements gives (0 for mean, before the division)."""
    if kind in ("max", "min"):
        return lowest(dtype) if kind == "max" else highest(dtype)
    return {"sum": 0, "mean": 0, "prod": 1, "any": False, "all": True}[kind]


def _reduced(dims: Sequence[Dim], axes: Sequence[int], keepdims: bool) -> list[Dim]:
    kept = [1 if i in axes else d for i, d in enumerate(dims)]
    return kept if keepdims else [d for i, d in enumerate(dims) if i not in axes]


def _reduce_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if a.kind not in KINDS:
        raise ValueError(f"unknown reduction '{a.kind}'; known: {', '.join(KINDS)}")
    if len(set(a.axes)) != len(a.axes):
        raise ValueError(f"reduce: axes {list(a.axes)} name an axis twice")
    for axis in a.axes:
        axis_in(axis, t[0].rank, "reduce")
    if (t[0].dtype.kind == "bool") != (a.kind in ("any", "all")):
        raise ValueError(f"reduce '{a.kind}' does not take {t[0].dtype.name}")
    return [t[0].with_dims(_reduced(t[0].dims, a.axes, a.keepdims))]


def _reduce(x: Sequence[Any], a: Attrs) -> list[Any]:
    data, axes = wide(x[0]), tuple(a.axes)
    options = {"axis": axes, "keepdims": a.keepdims}
    if a.kind in ("any", "all"):
        result = getattr(np, a.kind)(data, **options)
    elif a.kind in ("max", "min"):
        start = neutral(a.kind, from_numpy(data.dtype))
        result = getattr(np, a.kind)(data, initial=start, **options)
    elif a.kind == "prod":
        result = np.prod(data, dtype=data.dtype, **options)
    else:
        result = np.sum(data, dtype=data.dtype, **options)
    if a.kind == "mean":
        result = _divide(result, math.prod(data.shape[i] for i in axes))
    return [np.asarray(result).astype(x[0].dtype)]


def _divide(total: Any, count: int) -> Any:
    """total / count; integers round towards zero and give 0 for a count of 0."""
    if np.asarray(total).dtype.kind in "iu":
        wide_total = total.astype(np.int64 if total.dtype.kind == "i" else np.uint64)
        size = np.asarray(max(count, 1), wide_total.dtype)
        return np.sign(wide_total) * (abs(wide_total) // size) * (count > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / np.asarray(count, total.dtype)


def _source(cx: ElementCx, index: Sequence[Index], inner: Sequence[Index]) -> list[Index]:
    """The operand's index from the result's and from that of the reduced axes."""
    axes, rank = sorted(cx.attrs.axes), cx.operand_types[0].rank
    outer = iter([i for k, i in enumerate(index) if not (cx.attrs.keepdims and k in axes)])
    reduced = iter(inner)
    return [next(reduced) if k in axes else next(outer) for k in range(rank)]


def _extents(cx: ElementCx) -> list[Dim]:
    return [cx.operand_types[0].dims[k] for k in sorted(cx.attrs.axes)]


def _step(cx: ElementCx, total: Value, value: Value) -> Value:
    return cx.b.scalar(_STEP[cx.attrs.kind], total, cx.b.cast(value, element_dtype(total).name))


def _start(cx: ElementCx) -> Value:
    dtype = cx.operand_types[0].dtype.compute
    return cx.b.const(neutral(cx.attrs.kind, dtype), dtype.name)


def _finish(cx: ElementCx, total: Value) -> Value:
    b, dtype = cx.b, element_dtype(total).name
    if cx.attrs.kind == "mean":
        count = b.from_index(b.dim(product(_extents(cx))), "i64")
        kind = element_dtype(total)  # an integer type may be too narrow for the count
        wide_name = dtype if kind.is_float else "u64" if kind.kind == "uint" else "i64"
        total = b.scalar("div", b.cast(total, wide_name), b.cast(count, wide_name))
    return b.cast(total, cx.result_type.dtype.name)


def _reduce_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    (total,) = loops(
        cx.b,
        _extents(cx),
        [_start(cx)],
        lambda inner, total: [_step(cx, total, cx.operand(0, _source(cx, index, inner)))],
    )
    return _finish(cx, total)


def _reduce_kernel(cx: KernelCx) -> None:
    dims = cx.operand_types[0].dims
    last = len(dims) - 1
    row = dims[last] if dims else 1
    if last in cx.attrs.axes or (isinstance(row, int) and row < 8):
        index = cx.tasks(cx.result_type.dims)
        cx.store(_reduce_element(cx, index), index)
    else:
        _reduce_rows(cx, dims)


def _reduce_rows(cx: KernelCx, dims: Sequence[Dim]) -> None:
    """The contiguous last axis is kept: rows of it are added up, a block at a time.

    Sums are made of short ones, since a long chain of roundings drifts.
    """
    b, rank = cx.b, len(dims)
    outer = [k for k in range(rank - 1) if k not in cx.attrs.axes]
    *at, block = cx.tasks([*(dims[k] for k in outer), ceil_div(dims[-1], BLOCK)])
    first = b.mul(block, BLOCK)
    count = b.index("min", b.sub(b.dim(dims[-1]), first), BLOCK)
    dtype = cx.operand_types[0].dtype.compute.name
    room = block_room(dims[-1])
    totals, part = cx.scratch(room, dtype), cx.scratch(room, dtype)
    extents = _extents(cx)

    def each(body: Callable[[Value], None]) -> None:
        with b.loop(0, count, kind="parallel") as row:
            body(row.iv)

    def add_rows(outside: tuple[Index, ...], start: Index, stop: Index) -> None:
        """Rows [start, stop) of the last reduced axis: a short sum, which then joins the total."""
        each(lambda i: part.store(_start(cx), i))
        with b.loop(start, stop, kind="") as inner:

            def add(i: Value) -> None:
                index = _result_index(cx, outer, at, b.add(first, i))
                value = cx.operand(0, _source(cx, index, (*outside, inner.iv)))
                part.store(_step(cx, part.load(i), value), i)

            each(add)
        each(lambda i: totals.store(_step(cx, totals.load(i), part.load(i)), i))

    each(lambda i: totals.store(_start(cx), i))
    if len(extents) > 1:
        for_each(b, extents[:-1], lambda i: add_rows(i, 0, b.dim(extents[-1])), kind="")
    elif not extents:
        add_rows((), 0, 1)
    else:
        pieces = ceil_div(extents[0], SHORT_SUM)
        with b.loop(0, b.dim(pieces), kind="") as piece:
            start = b.mul(piece.iv, SHORT_SUM)
            stop = b.index("min", b.add(start, SHORT_SUM), b.dim(extents[0]))
            add_rows((), start, stop)
    each(
        lambda i: cx.store(
            _finish(cx, totals.load(i)), _result_index(cx, outer, at, b.add(first, i))
        )
    )


def _result_index(
    cx: ElementCx, outer: Sequence[int], at: Sequence[Index], last: Index
) -> list[Index]:
    known = dict(zip(outer, at, strict=True)) | {cx.operand_types[0].rank - 1: last}
    ranks = range(cx.operand_types[0].rank)
    if cx.attrs.keepdims:
        return [known.get(k, 0) for k in ranks]
    return [known[k] for k in ranks if k in known]


REDUCE = Primitive(
    name="reduce",  # integers wrap in their own type; f16 and bf16 add up in f32, rounded once
    infer=_reduce_type,
    evaluate=_reduce,
    attrs={"kind": Attr("str"), "axes": Attr("ints"), "keepdims": Attr("bool", False)},
    element=_reduce_element,
    kernel=_reduce_kernel,
    tags=frozenset({"reduction"}),
    tolerance=1e-5,
    computes=True,
).register()


def _arg_type(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if a.kind not in ("max", "min"):
        raise ValueError(f"arg_reduce takes 'max' or 'min', not '{a.kind}'")
    if t[0].dtype.kind == "bool":
        raise ValueError("arg_reduce: bools have no order")
    axis = axis_in(a.axis, t[0].rank, "arg_reduce")
    if t[0].dims[axis] == 0:
        raise ValueError(f"arg_reduce: axis {axis} is empty")
    return [TensorType.of(_reduced(t[0].dims, [axis], a.keepdims), "i64")]


def _arg_reduce(x: Sequence[Any], a: Attrs) -> list[Any]:
    data = wide(x[0])
    choose = np.argmax if a.kind == "max" else np.argmin
    if not a.last:
        return [choose(data, axis=a.axis, keepdims=a.keepdims)]
    size = data.shape[a.axis]
    return [size - 1 - choose(np.flip(data, a.axis), axis=a.axis, keepdims=a.keepdims)]


def _arg_element(cx: ElementCx, index: Sequence[Index]) -> Value:
    """The extremum first, then the position where it stands: either walk vectorises."""
    b, a, (source,) = cx.b, cx.attrs, cx.operand_types
    dtype, extent = source.dtype, source.dims[a.axis]
    at = [i for k, i in enumerate(index) if not (a.keepdims and k == a.axis)]

    def element(inner: tuple[Index, ...]) -> Value:
        return cx.operand(0, [*at[: a.axis], *inner, *at[a.axis :]])

    worst = b.const(lowest(dtype) if a.kind == "max" else highest(dtype), dtype.name)
    (best,) = loops(b, [extent], [worst], lambda i, v: [b.scalar(a.kind, v, element(i))])
    nowhere = b.from_index(0 if a.last else b.dim(extent), "i64")

    def step(inner: tuple[Index, ...], where: Value) -> Sequence[Value]:
        found = _is_best(cx, element(inner), best)
        here = b.from_index(inner[0], "i64")
        place = b.scalar("select", found, here, nowhere, result="i64")
        return [b.scalar("max" if a.last else "min", where, place)]

    return loops(b, [extent], [nowhere], step)[0]


def _is_best(cx: ElementCx, value: Value, best: Value) -> Value:
    """Whether an element is the extremum; where there are NaNs, they are."""
    found = cx.b.scalar("eq", value, best, result="bool")
    if not element_dtype(value).is_float:
        return found
    return cx.b.scalar("or", found, cx.b.scalar("isnan", value, result="bool"))


ARG_REDUCE = Primitive(
    name="arg_reduce",  # i64 position along `axis`; a NaN wins; the first of equals, or the last
    infer=_arg_type,
    evaluate=_arg_reduce,
    attrs={
        "kind": Attr("str"),
        "axis": Attr("int"),
        "keepdims": Attr("bool", False),
        "last": Attr("bool", False),
    },
    element=_arg_element,
    tags=frozenset({"reduction"}),
    computes=True,
).register()
