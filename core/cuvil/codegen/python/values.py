"""Values of the `py` dialect as LLVM values, and in memory as slots of 8 bytes.

In memory they lie as the runtime has them (runtime_c/python/src/native_types.h).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from cuvil.codegen.llvm_util import F32, F64, I1, I8, I64, PTR, address, i64
from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    Array,
    Scalar,
    Tensor,
    Tuple,
    Type,
    Union,
    parse,
)

STR_TYPE = ir.LiteralStructType([PTR, I64])
NUMBER_TYPE = ir.LiteralStructType([F64, I1])
_PLAIN: dict[Type, ir.Type] = {
    INT: I64, FLOAT: F64, BOOL: I1, NONE: I1, STR: STR_TYPE, NUMBER: NUMBER_TYPE
}  # fmt: skip


def of_code(code: str) -> Type:
    """The type of a text."""
    return parse(code)


def scalar_type(dtype: str) -> ir.Type:
    """The LLVM type of a numpy scalar; bool is one bit."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return F32 if kind.itemsize == 4 else F64
    return I1 if dtype == "?" else ir.IntType(kind.itemsize * 8)


def llvm_type(kind: Type) -> ir.Type:
    """The LLVM type of a value. Containers are addresses; None is a bit that nobody reads."""
    kind = in_memory(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, Scalar):
        return scalar_type(kind.dtype)
    if isinstance(kind, Tuple):
        return ir.LiteralStructType([llvm_type(t) for t in kind.items])
    if isinstance(kind, Array):
        extents = ir.ArrayType(I64, kind.rank)
        return ir.LiteralStructType([PTR, extents, extents, I64])
    if isinstance(kind, Union):
        return ir.LiteralStructType([I64, ir.ArrayType(I64, max(map(slots, kind.items)))])
    return PTR


def in_memory(kind: Type) -> Type:
    """A type as it lies in memory: a tensor as its array, a tensor of rank 0 as its element."""
    if isinstance(kind, Tensor):
        return kind.array
    return Scalar(kind.dtype) if isinstance(kind, Scalar) else kind


def slots(kind: Type) -> int:
    """How many slots a value takes in memory."""
    kind = in_memory(kind)
    if kind == NONE:
        return 0
    if kind in (STR, NUMBER):
        return 2
    if isinstance(kind, Tuple):
        return sum(map(slots, kind.items))
    if isinstance(kind, Array):
        return 2 + 2 * kind.rank
    if isinstance(kind, Union):
        return 1 + max(map(slots, kind.items))
    return 1


def tagged(b: ir.IRBuilder, access: ir.Instruction, kind: str) -> ir.Value:
    """A load or store of one kind of memory: "header", words of a List or Dict, or "item", all
    that values lie in. LLVM need not load a list's length again after an item was written."""
    root = b.module.add_metadata(["cuvil.py"])
    node = b.module.add_metadata([f"cuvil.py.{kind}", root, i64(0)])
    access.set_metadata("tbaa", b.module.add_metadata([node, node, i64(0)]))
    return access


def load_value(b: ir.IRBuilder, place: ir.Value, kind: Type, at: int = 0) -> ir.Value:
    """The value in the slots from `place[at]` on."""
    kind = in_memory(kind)

    def part(kind: ir.Type, index: int) -> ir.Value:
        access = b.load(address(b, place, i64(at + index), I64), typ=kind, align=8)
        return tagged(b, access, "item")

    if kind == NONE:
        return ir.Constant(I1, 0)
    if kind == BOOL or kind == Scalar("?"):
        return b.trunc(part(I8, 0), I1)
    if kind in (STR, NUMBER):
        first = part(PTR if kind == STR else F64, 0)
        second = part(I64, 1)
        return struct(b, [first, second if kind == STR else b.trunc(second, I1)])
    if isinstance(kind, Tuple):
        items = []
        for item in kind.items:
            items.append(load_value(b, place, item, at))
            at += slots(item)
        return struct(b, items)
    if isinstance(kind, Array):
        extents = [part(I64, 1 + i) for i in range(2 * kind.rank)]
        owner = part(I64, 1 + 2 * kind.rank)
        return array(b, part(PTR, 0), extents[: kind.rank], extents[kind.rank :], owner)
    return part(llvm_type(kind), 0)


def store_value(b: ir.IRBuilder, value: ir.Value, place: ir.Value, kind: Type, at: int = 0) -> None:
    """Writes a value to the slots from `place[at]` on."""
    kind = in_memory(kind)

    def put(part: ir.Value, index: int) -> None:
        tagged(b, b.store(part, address(b, place, i64(at + index), I64), align=8), "item")

    if kind == NONE:
        return
    if kind == BOOL or kind == Scalar("?"):
        put(b.zext(value, I64), 0)
    elif kind in (STR, NUMBER):
        second = b.extract_value(value, 1)
        put(b.extract_value(value, 0), 0)
        put(second if kind == STR else b.zext(second, I64), 1)
    elif isinstance(kind, Tuple):
        for i, item in enumerate(kind.items):
            store_value(b, b.extract_value(value, i), place, item, at)
            at += slots(item)
    elif isinstance(kind, Array):
        put(b.extract_value(value, 0), 0)
        for i in range(2 * kind.rank):
            put(b.extract_value(value, [1 + i // kind.rank, i % kind.rank]), 1 + i)
        put(b.extract_value(value, 3), 1 + 2 * kind.rank)
    elif isinstance(kind, Union):
        put(b.extract_value(value, 0), 0)
        for i in range(slots(kind) - 1):
            put(b.extract_value(value, [1, i]), 1 + i)
    else:
        put(value, 0)


def struct(b: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """A literal struct of values."""
    made = ir.Constant(ir.LiteralStructType([p.type for p in parts]), ir.Undefined)
    for i, part in enumerate(parts):
        made = b.insert_value(made, part, i)
    return made


def array(
    b: ir.IRBuilder,
    data: ir.Value,
    shape: Sequence[ir.Value],
    strides: Sequence[ir.Value],
    owner: ir.Value,
) -> ir.Value:
    """An array's value. strides: in bytes."""
    extents = ir.ArrayType(I64, len(shape))
    made = ir.Constant(ir.LiteralStructType([PTR, extents, extents, I64]), ir.Undefined)
    made = b.insert_value(made, data, 0)
    for i, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        made = b.insert_value(made, extent, [1, i])
        made = b.insert_value(made, stride, [2, i])
    return b.insert_value(made, owner, 3)


def shape_of(b: ir.IRBuilder, value: ir.Value, rank: int) -> list[ir.Value]:
    """The extents of an array."""
    return [b.extract_value(value, [1, i]) for i in range(rank)]


def strides_of(b: ir.IRBuilder, value: ir.Value, kind: Array) -> list[ir.Value]:
    """The strides of an array in bytes; the innermost is a literal where it is contiguous."""
    found = [b.extract_value(value, [2, i]) for i in range(kind.rank)]
    if kind.contiguous and found:
        found[-1] = i64(np.dtype(kind.dtype).itemsize)
    return found


def load_element(b: ir.IRBuilder, place: ir.Value, dtype: str) -> ir.Value:
    """The element of an array at an address."""
    kind = scalar_type(dtype)
    if dtype == "?":
        byte = tagged(b, b.load(place, typ=I8, align=1), "item")
        return b.icmp_unsigned("!=", byte, ir.Constant(I8, 0))
    return tagged(b, b.load(place, typ=kind, align=np.dtype(dtype).itemsize), "item")


def store_element(b: ir.IRBuilder, value: ir.Value, place: ir.Value, dtype: str) -> None:
    """Writes an element of an array to an address."""
    value = b.zext(value, I8) if dtype == "?" else value
    tagged(b, b.store(value, place, align=np.dtype(dtype).itemsize), "item")
