"""Sequences and optionals: lists of values while a model is imported, nothing at run time."""

from __future__ import annotations

from typing import Any

from cuvil.ir.dims import Dim, SymDim
from cuvil.ops.compose.helpers import axis_in, index_list, static, unsqueezed
from cuvil.ops.onnx.absent import Absent
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import extents
from cuvil.ops.onnx.movement import concat
from cuvil.ops.onnx.recurrent_loop import part
from cuvil.ops.onnx.registry import onnx_op

Sequence = list[Value]


MOST_PARTS = 4096


@onnx_op("SequenceEmpty", since=11)
def sequence_empty(cx: Cx, *, dtype: int = 1) -> Sequence:
    """A sequence without elements."""
    return []


@onnx_op("SequenceConstruct", since=11)
def sequence_construct(cx: Cx, x: Value, *rest: Value) -> Sequence:
    """A sequence of the operands."""
    return [x, *rest]


def _position(cx: Cx, sequence: Sequence, position: Value, most: int) -> int:
    at = index_list(cx, position, "the position")[0]
    if not -len(sequence) <= at < most:
        cx.bad(f"position {at} in a sequence of {len(sequence)}")
    return at + len(sequence) if at < 0 else at


@onnx_op("SequenceInsert", since=11)
def sequence_insert(cx: Cx, sequence: Sequence, x: Value, position: Value = None) -> Sequence:
    """One more element, by default at the end."""
    result = list(sequence)
    if position is None:
        return [*result, x]
    result.insert(_position(cx, sequence, position, len(sequence) + 1), x)
    return result


@onnx_op("SequenceErase", since=11)
def sequence_erase(cx: Cx, sequence: Sequence, position: Value = None) -> Sequence:
    """One element less, by default the last."""
    at = -1 if position is None else _position(cx, sequence, position, len(sequence))
    return [v for k, v in enumerate(sequence) if k != at % len(sequence)]


@onnx_op("SequenceAt", since=11)
def sequence_at(cx: Cx, sequence: Sequence, position: Value) -> Value:
    """One element."""
    return sequence[_position(cx, sequence, position, len(sequence))]


@onnx_op("SequenceLength", since=11)
def sequence_length(cx: Cx, sequence: Sequence) -> Value:
    """How many elements."""
    return cx.b.scalar(len(sequence), "i64")


@onnx_op("SplitToSequence", since=11)
def split_to_sequence(
    cx: Cx, x: Value, split: Value = None, *, axis: int = 0, keepdims: int = 1
) -> Sequence:
    """Parts of an axis: of one size, of given sizes (which a run may find), or single slices."""
    at = axis_in(cx, axis, cx.type(x).rank)
    parts: list[Value] = []
    first: Dim = 0
    for size in _sizes(cx, cx.dims(x)[at], split):
        piece = part(cx, x, at, first, size)
        if split is None and not keepdims:
            dims = cx.dims(piece)
            piece = cx.b.reshape(piece, dims=dims[:at] + dims[at + 1 :])
        parts.append(piece)
        first = first + size
    return parts


def _sizes(cx: Cx, extent: Dim, split: Value) -> list[Dim]:
    """The extents of the parts of an axis."""
    if split is None or cx.type(split).rank == 0:
        size = 1 if split is None else index_list(cx, split, "split")[0]
        whole = static(cx, [extent], "the split axis")[0]
        if size < 1 or whole > size * MOST_PARTS:
            cx.bad(f"parts of {size} of an axis of {whole}")
        return [min(size, whole - first) for first in range(0, whole, size)]
    count = static(cx, cx.dims(split), "the length of split")[0]
    sizes = extents(cx, split, "split", most=[extent] * count)
    total = sum(sizes[1:], start=sizes[0]) if sizes else 0
    if isinstance(total, int) and isinstance(extent, int) and total != extent:
        cx.bad(f"an axis of {extent} does not split into {sizes}")
    cx.equal(total, extent)
    if isinstance(total, SymDim):
        cx.require(total, extent)
    return sizes


@onnx_op("ConcatFromSequence", since=11)
def concat_from_sequence(cx: Cx, sequence: Sequence, *, axis: int, new_axis: int = 0) -> Value:
    """The elements one after the other along an axis, or along a new one."""
    if not sequence:
        cx.bad("the sequence is empty")
    if not new_axis:
        return concat(cx, *sequence, axis=axis)
    at = axis_in(cx, axis, cx.type(sequence[0]).rank + 1)
    return concat(cx, *(unsqueezed(cx, v, [at]) for v in sequence), axis=at)


@onnx_op("SequenceMap", since=17)
def sequence_map(cx: Cx, sequence: Sequence, *rest: Any, body: Any) -> tuple[Sequence, ...]:
    """The body on every element; other operands are sequences of as many, or given whole."""
    columns = [[v] * len(sequence) if not isinstance(v, list) else v for v in rest]
    if any(len(column) != len(sequence) for column in columns):
        cx.bad("sequences of different lengths")
    rows = [cx.inline(body, *items) for items in zip(sequence, *columns, strict=True)]
    return tuple(list(column) for column in zip(*rows, strict=True))


@onnx_op("Optional", since=15)
def optional(cx: Cx, x: Value = None, *, type: Any = None) -> Value:
    """The value itself, or nothing."""
    return Absent() if x is None else x


@onnx_op("OptionalHasElement", since=15)
def optional_has_element(cx: Cx, x: Value = None) -> Value:
    """Whether there is a value."""
    return cx.b.scalar(x is not None and x != [], "bool")


@onnx_op("OptionalGetElement", since=15)
def optional_get_element(cx: Cx, x: Value) -> Value:
    """The value; there must be one."""
    if isinstance(x, list) and not x:
        cx.bad("the optional is empty")
    return x
