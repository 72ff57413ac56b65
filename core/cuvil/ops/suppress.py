"""Greedy suppression of boxes that overlap better ones: the core of NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.gather import bounded_index
from cuvil.ops.lowering import KernelCx, both

KINDS = ("f32", "i64", "bool", "f32", "i64")
RANKS = (3, 3, 3, 0, 0)


def _infer(t: Sequence[TensorType], _: Attrs) -> list[TensorType]:
    fits = [(x.dtype.name, x.rank) for x in t] == list(zip(KINDS, RANKS, strict=True))
    if not fits or (isinstance(t[0].dims[2], int) and t[0].dims[2] != 4):
        raise ValueError(
            "suppress takes boxes [B, N, 4], order and eligibility [B, C, N], a threshold and a "
            f"limit, not {shapes(t)}"
        )
    return [t[2]]


def _overlap(a: Any, b: Any) -> Any:
    """Intersection over union of boxes (y1, x1, y2, x2); 0 where either is empty."""
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=-1, dtype=np.float32)
    first, second = (np.prod(x[..., 2:] - x[..., :2], axis=-1, dtype=np.float32) for x in (a, b))
    union = first + second - shared
    good = (first > 0) & (second > 0) & (shared > 0)
    return np.where(good, shared / np.where(union == 0, 1, union), 0)


def _evaluate(x: Sequence[Any], _: Attrs) -> list[Any]:
    boxes, order, eligible, threshold, limit = x
    result = np.zeros_like(eligible)
    for batch, cls in np.ndindex(*eligible.shape[:2]):
        kept: list[int] = []
        for place, box in enumerate(order[batch, cls]):
            if not eligible[batch, cls, place] or len(kept) >= limit:
                continue
            overlaps = _overlap(boxes[batch, kept], boxes[batch, box])
            if not (overlaps > threshold).any():
                kept.append(int(box))
                result[batch, cls, place] = True
    return [result]


def _kernel(cx: KernelCx) -> None:
    """A task per batch and class; the boxes that it keeps are listed in scratch."""
    b, dims = cx.b, cx.result_type.dims
    batch, cls = cx.tasks(dims[:2])
    kept = cx.scratch(dims[2], "i64")
    limit = b.to_index(cx.operand(4, ()))
    with b.loop(0, b.dim(dims[2]), [b.value(0)]) as loop:
        index, (count,) = (batch, cls, loop.iv), loop.args
        box = bounded_index(b, cx.operand(1, index), dims[2])
        mine = [cx.operand(0, (batch, box, k)) for k in range(4)]
        eligible = both(b, cx.operand(2, index), b.compare("lt", count, limit))
        assert eligible is not None
        tested = b.mul(count, b.to_index(eligible))
        with b.loop(0, tested, [b.const(False, "bool")]) as better:
            other = b.to_index(kept.load(better.iv))
            theirs = [cx.operand(0, (batch, other, k)) for k in range(4)]
            over = b.scalar("gt", _iou(cx, mine, theirs), cx.operand(3, ()), result="bool")
            better.yield_(b.scalar("or", better.args[0], over))
        keep = b.scalar("and", eligible, b.scalar("not", better.results[0]))
        cx.store(keep, index)
        taken = b.to_index(keep)
        with b.loop(0, taken):  # at most once
            kept.store(b.from_index(box, "i64"), count)
        loop.yield_(b.value(b.add(count, taken)))


def _iou(cx: KernelCx, a: Sequence[Value], c: Sequence[Value]) -> Value:
    b = cx.b
    zero = b.const(0, "f32")

    def extent(box: Sequence[Value], k: Index) -> Value:
        return b.scalar("sub", box[k + 2], box[k])  # type: ignore[operator, index]

    def shared(k: int) -> Value:
        high, low = b.scalar("min", a[k + 2], c[k + 2]), b.scalar("max", a[k], c[k])
        return b.scalar("max", b.scalar("sub", high, low), zero)

    inside = b.scalar("mul", shared(0), shared(1))
    first, second = (b.scalar("mul", extent(x, 0), extent(x, 1)) for x in (a, c))
    good = both(b, *(b.scalar("gt", v, zero, result="bool") for v in (first, second, inside)))
    assert good is not None
    union = b.scalar("sub", b.scalar("add", first, second), inside)
    return b.scalar("select", good, b.scalar("div", inside, union), zero, result="f32")


SUPPRESS = Primitive(
    name="suppress",  # of boxes in `order`, the eligible ones that overlap no kept one, up to limit
    infer=_infer,
    evaluate=_evaluate,
    kernel=_kernel,
    tags=frozenset({"anchor"}),
).register()
