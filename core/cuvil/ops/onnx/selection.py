"""Operators whose results are as long as the run finds: boxes that remain, distinct elements."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim, product
from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import as_i64, as_value, count_of, where_true
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(
    cx: Cx,
    boxes: Value,
    scores: Value,
    most: Value = None,
    iou: Value = None,
    least_score: Value = None,
    *,
    center_point_box: int = 0,
) -> Value:
    """[selected, 3]: (batch, class, box), by class the best boxes that overlap no better one."""
    b = cx.b
    if cx.type(boxes).rank != 3 or cx.type(scores).rank != 3:
        cx.bad("takes boxes [B, N, 4] and scores [B, C, N]")
    _, classes, count = cx.dims(scores)
    limit = b.scalar(0, "i64") if most is None else as_i64(cx, _scalar(cx, most))
    threshold = b.scalar(0, "f32") if iou is None else _scalar(cx, iou)
    values, order = b.top_k(scores, axis=2, k=count, largest=True)
    eligible = b.broadcast(b.scalar(True, "bool"), dims=cx.dims(scores))
    if least_score is not None:
        eligible = b.gt(values, _scalar(cx, least_score))
    corners = _corners(cx, boxes, bool(center_point_box))
    kept = b.suppress(corners, order, eligible, threshold, limit)
    place = where_true(cx, b.reshape(kept, dims=(product(cx.dims(kept)),)), "selected")
    box = b.gather(b.reshape(order, dims=(product(cx.dims(order)),)), place, axis=0)
    row = b.div(place, as_value(cx, count))
    columns = (b.div(row, as_value(cx, classes)), b.mod(row, as_value(cx, classes)), box)
    dims = (*cx.dims(place), 1)
    return b.concat(*(b.reshape(v, dims=dims) for v in columns), axis=1)


def _scalar(cx: Cx, x: Value) -> Value:
    return x if cx.type(x).rank == 0 else cx.b.reshape(x, dims=())


def _columns(cx: Cx, boxes: Value) -> list[Value]:
    batch, count, _ = cx.dims(boxes)
    return [
        cx.b.slice(boxes, starts=(0, 0, k), steps=(1, 1, 1), dims=(batch, count, 1))
        for k in range(4)
    ]


def _corners(cx: Cx, boxes: Value, centred: bool) -> Value:
    """Boxes as (y1, x1, y2, x2) with the lesser coordinates first."""
    b, (p, q, r, s) = cx.b, _columns(cx, boxes)
    if centred:  # x and y of the centre, width, height
        half = b.scalar(0.5, boxes)
        width, height = b.mul(r, half), b.mul(s, half)
        p, q, r, s = b.sub(q, height), b.sub(p, width), b.add(q, height), b.add(p, width)
    return b.concat(b.min(p, r), b.min(q, s), b.max(p, r), b.max(q, s), axis=2)


@onnx_op("Unique", since=11)
def unique(cx: Cx, x: Value, *, axis: int | None = None, sorted: int = 1) -> tuple[Value, ...]:
    """(distinct slices, where each is first, which of them every slice is, how often each is)."""
    b, kind = cx.b, cx.type(x)
    if axis is None:
        rows = b.reshape(x, dims=(kind.size, 1))
        at = 0
    else:
        at = axis_in(cx, axis, kind.rank)
        order = [at, *(k for k in range(kind.rank) if k != at)]
        rows = b.transpose(x, perm=order) if at else x
        rest = cx.dims(rows)[1:]
        rows = b.reshape(rows, dims=(kind.dims[at], product(rest)))
    keys = b.cast(rows, to="u8") if kind.dtype.kind == "bool" else rows
    order = _row_order(cx, keys)
    first, group = _groups(cx, b.gather(keys, order, axis=0))
    total = count_of(cx, first, "unique")
    number = cx.dims(order)[0]
    starts = b.positions(first, count=total)
    indices = b.gather(order, starts, axis=0)
    inverse = _scattered(cx, number, order, group)
    counts = b.scatter_elements(
        _zeros(cx, total), group, _ones(cx, number), axis=0, reduction="add"
    )
    if not sorted:
        indices, by_place = b.top_k(indices, axis=0, k=total, largest=False)
        counts = b.gather(counts, by_place, axis=0)
        rank = _scattered(cx, total, by_place, b.iota(dims=(total,), axis=0))
        inverse = b.gather(rank, inverse, axis=0)
    if axis is None:
        flat = b.reshape(x, dims=(kind.size,))
        return b.gather(flat, indices, axis=0), indices, inverse, counts
    return b.gather(x, indices, axis=at), indices, inverse, counts


def _zeros(cx: Cx, count: Dim) -> Value:
    return cx.b.broadcast(cx.b.scalar(0, "i64"), dims=(count,))


def _ones(cx: Cx, count: Dim) -> Value:
    return cx.b.broadcast(cx.b.scalar(1, "i64"), dims=(count,))


def _scattered(cx: Cx, count: Dim, places: Value, values: Value) -> Value:
    """result[places[i]] = values[i]."""
    return cx.b.scatter_elements(_zeros(cx, count), places, values, axis=0)


def _row_order(cx: Cx, rows: Value) -> Value:
    """Positions of the rows in lexicographic order; equal rows keep theirs."""
    b, (count, width) = cx.b, cx.dims(rows)

    def by_column(order: Value, column: Dim) -> Value:
        part = b.slice(rows, starts=(0, column), steps=(1, 1), dims=(count, 1))
        keys = b.gather(b.reshape(part, dims=(count,)), order, axis=0)
        _, places = b.top_k(keys, axis=0, k=count, largest=False)
        return b.gather(order, places, axis=0)

    start = b.iota(dims=(count,), axis=0)
    if width == 1:
        return by_column(start, 0)
    step = cx.new_symbol("column")

    def body(order: Value) -> Sequence[Value]:
        return [by_column(order, width - 1 - step)]

    region, types = cx.region([cx.type(start)], body)
    return b.emit_regions("loop", [start], types, [region], trip=width, symbol=str(step))[0]


def _groups(cx: Cx, rows: Value) -> tuple[Value, Value]:
    """(whether a sorted row differs from the one before, the number of its group)."""
    b, count = cx.b, cx.dims(rows)[0]
    here = b.iota(dims=(count,), axis=0)
    zero = b.scalar(0, "i64")
    before = b.gather(rows, b.max(b.sub(here, b.scalar(1, "i64")), zero), axis=0)
    differs = b.ne(rows, before)
    if cx.type(rows).dtype.is_float:
        differs = b.and_(differs, b.not_(b.and_(b.isnan(rows), b.isnan(before))))
    found = b.or_(b.reduce(differs, kind="any", axes=(1,), keepdims=False), b.eq(here, zero))
    total = b.cumulative(b.cast(found, to="i64"), kind="sum", axis=0)
    return found, b.sub(total, b.scalar(1, "i64"))
