"""The greatest or least elements of an axis."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import extents
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("TopK")
def top_k_attribute(cx: Cx, x: Value, *, k: int, axis: int = -1) -> tuple[Value, ...]:
    """k as an attribute, before opset 10."""
    return _top(cx, x, k, axis, True)


@onnx_op("TopK", since=10)
def top_k(
    cx: Cx, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Value, ...]:
    """(values, positions), always in order; the first of equals comes first."""
    extent = cx.dims(x)[axis_in(cx, axis, cx.type(x).rank)]
    return _top(cx, x, extents(cx, k, "k", [extent], 1)[0], axis, bool(largest))


def _top(cx: Cx, x: Value, k: Dim, axis: int, largest: bool) -> tuple[Value, ...]:
    at = axis_in(cx, axis, cx.type(x).rank)
    if isinstance(k, int):
        cx.assume(cx.dims(x)[at], k, None)
    return cx.b.top_k(x, axis=at, k=k, largest=largest)
