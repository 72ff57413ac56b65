"""The k greatest or least elements of an axis, in order, with their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.gather import INDEX_OUT_OF_RANGE
from cuvil.ops.lowering import KernelCx, Scratch, axis_in, element_dtype, wide

PASSES = 40  # of a merge sort: rows of up to 2**40 elements


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    axis = axis_in(a.axis, t[0].rank, "top_k")
    extent = t[0].dims[axis]
    if t[0].dtype.kind == "bool" or t[0].dtype.is_narrow:
        raise ValueError(f"top_k: {t[0].dtype} has no order")
    if isinstance(a.k, int) and (a.k < 0 or (isinstance(extent, int) and a.k > extent)):
        raise ValueError(f"top_k: {a.k} elements of an axis of {extent}")
    dims = [a.k if i == axis else d for i, d in enumerate(t[0].dims)]
    return [t[0].with_dims(dims), TensorType.of(dims, "i64")]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    if not 0 <= a.k <= x[0].shape[a.axis]:
        raise ValueError(f"{a.k} elements of an axis of {x[0].shape[a.axis]}")
    # Ranks make NaN one value above all others and leave nothing to negate. Of bfloat16 numpy
    # sorts NaN anywhere.
    _, rank = np.unique(wide(x[0]), return_inverse=True)
    rank = rank.reshape(x[0].shape)
    order = np.argsort(-rank if a.largest else rank, axis=a.axis, kind="stable")
    order = np.take(order, range(a.k), a.axis).astype(np.int64)
    return [np.take_along_axis(x[0], order, a.axis), order]


def _kernel(cx: KernelCx) -> None:
    """A task sorts one row: positions are merged back and forth between two halves of scratch."""
    b, axis = cx.b, cx.attrs.axis
    dims = cx.operand_types[0].dims
    at = cx.tasks([d for i, d in enumerate(dims) if i != axis])
    row = cx.scratch(dims[axis], cx.operand_types[0].dtype.name)
    order = cx.scratch(dims[axis] * 2, "i64")
    with b.loop(0, b.dim(dims[axis])) as loop:
        row.store(cx.operand(0, [*at[:axis], loop.iv, *at[axis:]]), loop.iv)
        order.store(b.from_index(loop.iv, "i64"), loop.iv)
    start = _sort(cx, row, order, dims[axis])
    _take(cx, row, order, start, at)


def _sort(cx: KernelCx, row: Scratch, order: Scratch, extent: Dim) -> Index:
    """Merges runs of 1, 2, 4 ... positions; gives where in `order` the sorted ones start."""
    b, n = cx.b, cx.b.dim(extent)
    with b.loop(0, _passes(extent), [b.value(1), b.value(0)]) as loop:
        width, start = loop.args
        # 1 while there are two runs to merge, else 0: then nothing runs and nothing moves.
        busy = b.index("min", b.index("max", b.sub(n, width), 0), 1)
        target = b.sub(n, start)
        pair = b.mul(width, 2)
        pairs = b.mul(busy, b.div(b.add(n, b.sub(pair, 1)), pair))
        with b.loop(0, pairs) as runs:
            _merge(cx, row, order, (start, target), (b.mul(runs.iv, pair), width, n))
        moved = b.mul(busy, b.sub(target, start))
        loop.yield_(b.value(pair), b.value(b.add(start, moved)))
    return loop.results[1]


def _passes(extent: Dim) -> int:
    return max(extent - 1, 0).bit_length() if isinstance(extent, int) else PASSES


def _merge(
    cx: KernelCx,
    row: Scratch,
    order: Scratch,
    places: tuple[Index, Index],
    run: tuple[Index, Index, Index],
) -> None:
    """Merges the sorted runs [low, low + width) and [low + width, ...) of positions."""
    b, (source, target), (low, width, n) = cx.b, places, run
    middle = b.index("min", b.add(low, width), n)
    high = b.index("min", b.add(middle, width), n)
    with b.loop(low, high, [b.value(low), b.value(middle)]) as loop:
        left, right = loop.args
        first = order.load(b.add(source, b.index("min", left, b.sub(middle, 1))))
        second = order.load(b.add(source, b.index("min", right, b.sub(high, 1))))
        later = _before(cx, row.load(b.to_index(second)), row.load(b.to_index(first)))
        # The left one goes first unless it is used up, or the right one is there and is before it.
        use_right = b.scalar("and", b.compare("lt", right, high), later)
        use_right = b.scalar("or", b.compare("le", middle, left), use_right)
        chosen = b.scalar("select", use_right, second, first, result="i64")
        order.store(chosen, b.add(target, loop.iv))
        step = b.to_index(use_right)
        loop.yield_(b.value(b.add(left, b.sub(1, step))), b.value(b.add(right, step)))


def _before(cx: KernelCx, x: Value, y: Value) -> Value:
    """Whether x comes before y; NaN counts as greater than every number."""
    b, largest = cx.b, cx.attrs.largest
    before = b.scalar("gt" if largest else "lt", x, y, result="bool")
    if not element_dtype(x).is_float:
        return before
    top, other = (x, y) if largest else (y, x)
    nan = b.scalar("isnan", top, result="bool")
    number = b.scalar("not", b.scalar("isnan", other, result="bool"))
    return b.scalar("or", before, b.scalar("and", nan, number))


def _take(cx: KernelCx, row: Scratch, order: Scratch, start: Index, at: Sequence[Index]) -> None:
    b, axis = cx.b, cx.attrs.axis
    k, n = b.dim(cx.attrs.k), b.dim(cx.operand_types[0].dims[axis])
    if not (isinstance(k, int) and isinstance(n, int)):
        b.fail_if(b.compare("lt", n, k), INDEX_OUT_OF_RANGE)
    with b.loop(0, b.index("min", k, n)) as loop:
        position = order.load(b.add(start, loop.iv))
        index = [*at[:axis], loop.iv, *at[axis:]]
        cx.store(row.load(b.to_index(position)), index, 0)
        cx.store(position, index, 1)


TOP_K = Primitive(
    name="top_k",  # values and i64 positions, in order; the first of equals first; NaN is greatest
    infer=_infer,
    evaluate=_evaluate,
    attrs={"axis": Attr("int"), "k": Attr("dim"), "largest": Attr("bool", True)},
    kernel=_kernel,
    tags=frozenset({"anchor"}),
).register()
