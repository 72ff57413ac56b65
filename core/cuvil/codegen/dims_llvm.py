"""Dimension expressions as LLVM arithmetic."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.llvm_util import I64, declare, i64
from cuvil.codegen.narrow_index import mark_index
from cuvil.codegen.slots import SlotTable
from cuvil.ir.dims import Dim, fold
from cuvil.ir.dims_scaled import MANTISSA

FAR = 1 << 62


def slot_address(b: ir.IRBuilder, dims: ir.Value, slot: int) -> ir.Value:
    return b.gep(dims, [i64(slot)], source_etype=I64)


def load_slot(b: ir.IRBuilder, dims: ir.Value, slot: int) -> ir.Value:
    """The number in a slot of `dims` (an i64 pointer)."""
    return mark_index(b.load(slot_address(b, dims, slot), typ=I64, align=8))


def dim_value(b: ir.IRBuilder, dims: ir.Value, slots: SlotTable, expr: Dim) -> ir.Value:
    """The value of an expression: a literal, or what its slot holds."""
    if isinstance(expr, int):
        return i64(expr)
    return load_slot(b, dims, slots.of(expr))


def compute(b: ir.IRBuilder, dims: ir.Value, slots: SlotTable, expr: Dim) -> ir.Value:
    """Computes an expression from its symbols' slots; never traps. A divisor of 0 counts as 1, as
    `evaluate` has it. What does not fit into 64 bits stays at about +-2**62 or beyond, which no
    allocation grants."""
    plus, minus = (
        declare(b.module, f"llvm.{name}.sat.i64", I64, [I64, I64]) for name in ("sadd", "ssub")
    )

    def add(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.call(plus, [x, y])

    def mul(x: ir.Value, y: ir.Value) -> ir.Value:
        if isinstance(x, ir.Constant) and isinstance(y, ir.Constant):
            return b.mul(x, y)
        pair = b.smul_with_overflow(x, y)
        far = b.select(b.icmp_signed("<", b.xor(x, y), i64(0)), i64(-FAR), i64(FAR))
        return b.select(b.extract_value(pair, 1), far, b.extract_value(pair, 0))

    def divided(x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
        safe = _safe(b, y)
        rest = b.srem(x, safe)
        differs = b.icmp_signed("<", b.xor(rest, safe), i64(0))
        up = b.and_(b.icmp_signed("!=", rest, i64(0)), differs)
        return b.sub(b.sdiv(x, safe), b.zext(up, I64)), b.select(up, b.add(rest, safe), rest)

    def floordiv(x: ir.Value, y: ir.Value) -> ir.Value:
        quotient, _ = divided(x, y)
        negated = b.call(minus, [i64(0), x])
        return b.select(b.icmp_signed("==", y, i64(-1)), negated, quotient)

    def mod(x: ir.Value, y: ir.Value) -> ir.Value:
        _, rest = divided(x, y)
        return rest  # 0 for the divisors 0 and -1

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
        mod=mod,
        minimum=minimum,
        maximum=maximum,
        scaled=lambda x, n, d: floordiv(_rounded(b, mul(_rounded(b, x), i64(n))), i64(d)),
    )


def _rounded(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """float32(x) for x >= 0, by integers: some targets have no float unit."""
    bits = x
    for k in range(6):  # every bit below the highest one
        bits = b.or_(bits, b.lshr(bits, i64(1 << k)))
    above = b.add(bits, i64(1))
    unit, half = b.lshr(above, i64(MANTISSA)), b.lshr(above, i64(MANTISSA + 1))  # of x's last place
    even = b.icmp_unsigned("==", b.and_(x, unit), i64(0))
    tie = b.and_(even, b.icmp_unsigned("!=", half, i64(0)))
    up = b.sub(b.add(x, half), b.zext(tie, I64))
    return b.and_(up, b.neg(b.select(b.icmp_unsigned("==", unit, i64(0)), i64(1), unit)))


def _safe(b: ir.IRBuilder, divisor: ir.Value) -> ir.Value:
    """The divisor, or 1 for 0 and for -1, which traps under the lowest number."""
    bad = b.icmp_unsigned("<=", b.add(divisor, i64(1)), i64(1))
    return b.select(bad, i64(1), divisor)
