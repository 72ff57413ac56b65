"""Buffers without upper bound: a table of addresses and capacities in main's frame."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen import abi
from cuvil.codegen.llvm_util import I32, I64, PTR, callee, declare, i64

OUT_OF_MEMORY = 6  # CUVIL_OUT_OF_MEMORY
ENTRY = ir.LiteralStructType([PTR, I64])
ALLOCATE = ir.FunctionType(PTR, [PTR, I64])


class GrowingBuffers:
    """The table of one main function, empty when a run begins."""

    def __init__(self, b: ir.IRBuilder, frame: ir.Value, count: int) -> None:
        self.frame = frame
        self.table = b.alloca(ENTRY, count)
        for number in range(count):
            b.store(ir.Constant(ENTRY, None), self._entry(b, number))

    def _entry(self, b: ir.IRBuilder, number: int) -> ir.Value:
        return b.gep(self.table, [i64(number)], source_etype=ENTRY)

    def address(self, b: ir.IRBuilder, number: int) -> ir.Value:
        return abi.field(b, self._entry(b, number), ENTRY, 0)

    def grow(self, b: ir.IRBuilder, number: int, size: ir.Value, keep: bool) -> ir.Value:
        """The status of making buffer `number` at least `size` bytes long."""
        function = b.module.globals.get("cuvil.grow") or _emit_grow(b.module)
        flag = ir.Constant(ir.IntType(1), int(keep))
        return b.call(function, [self.frame, self._entry(b, number), size, flag])


def _emit_grow(module: ir.Module) -> ir.Function:
    """`grow(frame, entry, bytes, keep)`: at least to twice the size, as blocks that were too small
    are given back at the end of the run only."""
    kind = ir.FunctionType(I32, [PTR, PTR, I64, ir.IntType(1)])
    function = ir.Function(module, kind, "cuvil.grow")
    function.linkage = "internal"
    function.attributes.add("noinline")
    frame, entry, size, keep = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    old, capacity = abi.field(b, entry, ENTRY, 0), abi.field(b, entry, ENTRY, 1)
    enough = b.icmp_signed("<=", size, capacity)
    with b.if_then(b.and_(enough, b.icmp_signed(">=", size, i64(0)))):
        b.ret(ir.Constant(I32, 0))
    double = b.mul(capacity, i64(2))
    wanted = b.select(b.icmp_signed("<", size, double), double, size)
    wanted = b.select(b.icmp_signed("<", size, i64(0)), size, wanted)
    api = abi.field(b, frame, abi.FRAME, abi.FRAME_API)
    allocate = callee(b, abi.field(b, api, abi.API, abi.API_ALLOCATE), ALLOCATE)
    fresh = b.call(allocate, [frame, wanted])
    with b.if_then(b.icmp_unsigned("==", fresh, ir.Constant(PTR, None)), likely=False):
        b.ret(ir.Constant(I32, OUT_OF_MEMORY))
    copy = declare(module, "llvm.memcpy.p0.p0.i64", ir.VoidType(), [PTR, PTR, I64, ir.IntType(1)])
    moved = b.select(keep, capacity, i64(0))
    b.call(copy, [fresh, old, moved, ir.Constant(ir.IntType(1), 0)])
    b.store(fresh, abi.field_address(b, entry, ENTRY, 0))
    b.store(wanted, abi.field_address(b, entry, ENTRY, 1))
    b.ret(ir.Constant(I32, 0))
    return function
