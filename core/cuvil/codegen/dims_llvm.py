"""Dimension expressions as LLVM arithmetic."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.llvm_util import I64, declare, i64
from cuvil.codegen.slots import SlotTable
from cuvil.ir.dims import Dim, fold

FAR = 1 << 62


def slot_address(b: ir.IRBuilder, dims: ir.Value, slot: int) -> ir.Value:
    return b.gep(dims, [i64(slot)], source_etype=I64)


def load_slot(b: ir.IRBuilder, dims: ir.Value, slot: int) -> ir.Value:
    """The number in a slot of `dims` (an i64 pointer)."""
    return b.load(slot_address(b, dims, slot), typ=I64, align=8)


def dim_value(b: ir.IRBuilder, dims: ir.Value, slots: SlotTable, expr: Dim) -> ir.Value:
    """The value of an expression: a literal, or what its slot holds."""
    if isinstance(expr, int):
        return i64(expr)
    return load_slot(b, dims, slots.of(expr))


def compute(b: ir.IRBuilder, dims: ir.Value, slots: SlotTable, expr: Dim) -> ir.Value:
    """Computes an expression from its symbols' slots. A divisor of 0 gives 0: no trap. What does
    not fit into 64 bits stays at about +-2**62, which no allocation grants."""
    plus = declare(b.module, "llvm.sadd.sat.i64", I64, [I64, I64])

    def add(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.call(plus, [x, y])

    def mul(x: ir.Value, y: ir.Value) -> ir.Value:
        if isinstance(x, ir.Constant) and isinstance(y, ir.Constant):
            return b.mul(x, y)
        pair = b.smul_with_overflow(x, y)
        far = b.select(b.icmp_signed("<", b.xor(x, y), i64(0)), i64(-FAR), i64(FAR))
        return b.select(b.extract_value(pair, 1), far, b.extract_value(pair, 0))

    def floordiv(x: ir.Value, y: ir.Value) -> ir.Value:
        quotient = b.sdiv(x, _safe(b, y))
        rest = b.srem(x, _safe(b, y))
        wrong = b.and_(
            b.icmp_signed("!=", rest, i64(0)),
            b.icmp_signed("<", b.xor(rest, y), i64(0)),
        )
        return b.sub(quotient, b.zext(wrong, I64))

    def minimum(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.select(b.icmp_signed("<", x, y), x, y)

    def maximum(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.select(b.icmp_signed(">", x, y), x, y)

    return fold(
        expr,
        const=i64,
        symbol=lambda name: load_slot(b, dims, slots.of_symbol(name)),
        add=add,
        mul=mul,
        floordiv=floordiv,
        mod=lambda x, y: b.sub(x, b.mul(floordiv(x, y), y)),
        minimum=minimum,
        maximum=maximum,
    )


def _safe(b: ir.IRBuilder, divisor: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed("==", divisor, i64(0)), i64(1), divisor)
