"""numpy arrays: elements, views, and new ones in the memory of the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from cuvil.codegen.llvm_util import I8, I64, PTR, address, i64
from cuvil.codegen.python.emit import Applied, Emit, function
from cuvil.codegen.python.numbers import checked, wrapped
from cuvil.codegen.python.values import (
    array,
    in_memory,
    load_element,
    shape_of,
    store_element,
    strides_of,
)
from cuvil.ir.py_types import Array, Type

BLOCK_BYTES = 64  # of the header before the elements: native_types.h


def _array(kind: Type) -> Array:
    kind = in_memory(kind)
    assert isinstance(kind, Array)
    return kind


def new_array(e: Emit, kind: Array, shape: Sequence[ir.Value], zeroed: bool, site: int) -> ir.Value:
    """An array in C order; the failure for a negative extent or too many elements."""
    size = np.dtype(kind.dtype).itemsize
    total = i64(size)
    for extent in shape:
        if not isinstance(extent, ir.Constant):
            e.fail_if(e.b.icmp_signed("<", extent, i64(0)), site)
        total = checked(e, "smul", total, extent, site)
    block = e.support("py_block", PTR, [total, i64(int(zeroed))])
    strides = [i64(size)]
    for extent in reversed(shape[1:]):
        strides.append(e.b.mul(strides[-1], extent))
    owner = e.b.or_(e.b.ptrtoint(block, I64), i64(1))
    data = address(e.b, block, i64(BLOCK_BYTES), I8)
    return array(e.b, data, shape, strides[::-1] if shape else [], owner)


@function("array.new")
def _new(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """An array of the extents; params: whether it is cleared."""
    return new_array(e, _array(op.results[0]), args, bool(op.params[0]), op.site)


@function("array.extent")
def _extent(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.extract_value(args[0], [1, op.params[0]])


def place(e: Emit, op: Applied, args: list[ir.Value], count: int) -> ir.Value:
    """The address of the element, or of the part, that the first `count` indices select."""
    kind = _array(op.kinds[0])
    at = e.b.extract_value(args[0], 0)
    extents, strides = shape_of(e.b, args[0], kind.rank), strides_of(e.b, args[0], kind)
    for i in range(count):
        index = args[1 + i]
        if i not in op.safe:
            index = wrapped(e, index, extents[i], op.site)
        at = address(e.b, at, e.b.mul(index, strides[i], flags=("nsw",)), I8)
    return at


@function("array.get")
def _get(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    kind = _array(op.kinds[0])
    return load_element(e.b, place(e, op, args, kind.rank), kind.dtype)


@function("array.set")
def _set(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(array, indices, value)."""
    kind = _array(op.kinds[0])
    store_element(e.b, args[-1], place(e, op, args, kind.rank), kind.dtype)


@function("array.part")
def _part(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """The view that leading indices select."""
    kind, count = _array(op.kinds[0]), len(args) - 1
    extents, strides = shape_of(e.b, args[0], kind.rank), strides_of(e.b, args[0], kind)
    owner = e.b.extract_value(args[0], 3)
    return array(e.b, place(e, op, args, count), extents[count:], strides[count:], owner)


@function("array.slice")
def _slice(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(array, start, step, items) along the axis of params."""
    value, start, step, items = args
    axis = op.params[0]
    at, stride = e.b.extract_value(value, 0), e.b.extract_value(value, [2, axis])
    some = e.b.icmp_signed(">", items, i64(0))
    offset = e.b.select(some, e.b.mul(start, stride), i64(0))
    value = e.b.insert_value(value, address(e.b, at, offset, I8), 0)
    value = e.b.insert_value(value, items, [1, axis])
    return e.b.insert_value(value, e.b.mul(stride, step), [2, axis])


@function("array.drop")
def _drop(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(array, index): the view at an index of the axis of params, without the axis."""
    kind, axis = _array(op.kinds[0]), op.params[0]
    extents, strides = shape_of(e.b, args[0], kind.rank), strides_of(e.b, args[0], kind)
    index = wrapped(e, args[1], extents[axis], op.site)
    at = address(e.b, e.b.extract_value(args[0], 0), e.b.mul(index, strides[axis]), I8)
    rest = [i for i in range(kind.rank) if i != axis]
    owner = e.b.extract_value(args[0], 3)
    return array(e.b, at, [extents[i] for i in rest], [strides[i] for i in rest], owner)


@function("array.permute")
def _permute(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Axes in the order of params; -1 is a new axis of extent 1."""
    kind = _array(op.kinds[0])
    extents, strides = shape_of(e.b, args[0], kind.rank), strides_of(e.b, args[0], kind)
    shape = [i64(1) if i < 0 else extents[i] for i in op.params]
    steps = [i64(0) if i < 0 else strides[i] for i in op.params]
    return array(
        e.b, e.b.extract_value(args[0], 0), shape, steps, e.b.extract_value(args[0], 3)
    )  # fmt: skip


@function("array.reshape")
def _reshape(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(contiguous array, extents), one of which may be -1; the failure where they do not fit."""
    kind, wanted = _array(op.kinds[0]), args[1:]
    total = i64(1)
    for extent in shape_of(e.b, args[0], kind.rank):
        total = e.b.mul(total, extent)
    known, open_axes = i64(1), i64(0)
    for extent in wanted:
        is_open = e.b.icmp_signed("==", extent, i64(-1))
        e.fail_if(e.b.icmp_signed("<", extent, i64(-1)), op.site)
        known = checked(e, "smul", known, e.b.select(is_open, i64(1), extent), op.site)
        open_axes = e.b.add(open_axes, e.b.zext(is_open, I64))
    e.fail_if(e.b.icmp_signed(">", open_axes, i64(1)), op.site)
    nothing = e.b.icmp_signed("==", known, i64(0))
    e.fail_if(e.b.and_(nothing, e.b.icmp_signed("!=", open_axes, i64(0))), op.site)
    rest = e.b.sdiv(total, e.b.select(nothing, i64(1), known))
    shape = [e.b.select(e.b.icmp_signed("==", x, i64(-1)), rest, x) for x in wanted]
    found = i64(1)
    for extent in shape:
        found = e.b.mul(found, extent)
    e.fail_if(e.b.icmp_signed("!=", found, total), op.site)
    strides = [i64(np.dtype(kind.dtype).itemsize)]
    for extent in reversed(shape[1:]):
        strides.append(e.b.mul(strides[-1], extent))
    data, owner = (e.b.extract_value(args[0], i) for i in (0, 3))
    return array(e.b, data, shape, strides[::-1], owner)
