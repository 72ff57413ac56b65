"""Products that micro-kernels add up: of elements, or of groups of neighbours at once."""

from llvmlite import ir

from cuvil.codegen.facts import GROUPS, TargetFacts
from cuvil.codegen.llvm_util import (
    F32,
    F64,
    I8,
    I16,
    I32,
    BFloat,
    declare,
    filled,
    fma,
    shaped,
    vector,
)


def sum_type(dtype: str) -> ir.Type:
    """The IR type of a sum of products of this dtype or group."""
    return {"f64": F64, "u8s8x4": I32}.get(dtype, F32)


def dot(
    b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value, dtype: str, facts: TargetFacts
) -> ir.Value:
    """total + x * y per lane; a group's lane is the sum of its products.

    x, y: vectors of elements, or of groups as 32-bit integers: of x the bytes are unsigned, of y
    signed. Sums of bytes are exact and wrap.
    """
    if dtype not in GROUPS:
        return fma(b, x, y, total, facts.fma)
    lanes = x.type.count if isinstance(x.type, ir.VectorType) else 1
    if dtype in facts.dots and lanes == facts.lanes(dtype):
        kind = vector(BFloat() if dtype == "bf16x2" else I8, 32 * lanes // _BITS[dtype])
        function = declare(b.module, facts.dots[dtype], total.type, [total.type, kind, kind])
        return b.call(function, [total, b.bitcast(x, kind), b.bitcast(y, kind)])
    if dtype == "u8s8x4":
        pairs = facts.dots.get("i16x2") if lanes == facts.lanes(dtype) else None
        return _add_pairs(b, x, y, total, pairs) if pairs else _add_bytes(b, x, y, total)
    for left, right in zip(_halves(b, x), _halves(b, y), strict=True):
        total = fma(b, left, right, total, facts.fma)
    return total


_BITS = {"bf16x2": 16, "u8s8x4": 8}


def add(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The sum of two sums."""
    kind = x.type.element if isinstance(x.type, ir.VectorType) else x.type
    return b.add(x, y) if isinstance(kind, ir.IntType) else b.fadd(x, y)


def _halves(b: ir.IRBuilder, pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The first and the second bf16 of every pair as floats: their bits are a float's upper."""
    number = shaped(pairs, F32)
    low, high = filled(pairs.type, 16), filled(pairs.type, 0xFFFF0000)
    return b.bitcast(b.shl(pairs, low), number), b.bitcast(b.and_(pairs, high), number)


def _add_pairs(b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value, name: str) -> ir.Value:
    """Bytes 0 and 2, then 1 and 3, as 16-bit integers: their products and sums are exact."""
    lanes = x.type.count
    kind = vector(I16, 2 * lanes)
    function = declare(b.module, name, total.type, [kind, kind])
    eight = filled(kind, 8)
    left, right = b.bitcast(x, kind), b.bitcast(y, kind)
    low = b.lshr(b.shl(left, eight), eight), b.ashr(b.shl(right, eight), eight)
    high = b.lshr(left, eight), b.ashr(right, eight)
    for pair in (low, high):
        total = b.add(total, b.call(function, pair))
    return total


def _add_bytes(b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    for place in range(4):
        up = filled(x.type, 24 - 8 * place)
        down = filled(x.type, 24)
        left, right = b.lshr(b.shl(x, up), down), b.ashr(b.shl(y, up), down)
        total = b.add(total, b.mul(left, right))
    return total
