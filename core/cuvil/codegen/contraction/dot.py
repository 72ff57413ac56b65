"""Products that micro-kernels add up: of elements, or of groups of neighbours at once."""

from llvmlite import ir

from cuvil.codegen.facts import GROUPS, TargetFacts
from cuvil.codegen.llvm_util import F32, F64, I32, BFloat, declare, fma, vector


def sum_type(dtype: str) -> ir.Type:
    """The IR type of a sum of products of this dtype or group."""
    return F64 if dtype == "f64" else F32


def dot(
    b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value, dtype: str, facts: TargetFacts
) -> ir.Value:
    """total + x * y per lane; a group's lane is the sum of its products.

    x, y: vectors of elements, or of groups as 32-bit integers.
    """
    if dtype not in GROUPS:
        return fma(b, x, y, total, facts.fma)
    lanes = x.type.count
    if dtype in facts.dots and lanes == facts.lanes(dtype):
        kind = vector(BFloat(), 2 * lanes)
        function = declare(b.module, facts.dots[dtype], total.type, [total.type, kind, kind])
        return b.call(function, [total, b.bitcast(x, kind), b.bitcast(y, kind)])
    for left, right in zip(_halves(b, x), _halves(b, y), strict=True):
        total = fma(b, left, right, total, facts.fma)
    return total


def _halves(b: ir.IRBuilder, pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The first and the second bf16 of every pair as floats: their bits are a float's upper."""
    lanes = pairs.type.count
    kind = vector(F32, lanes)
    low = ir.Constant(pairs.type, [ir.Constant(I32, 16)] * lanes)
    high = ir.Constant(pairs.type, [ir.Constant(I32, 0xFFFF0000)] * lanes)
    return b.bitcast(b.shl(pairs, low), kind), b.bitcast(b.and_(pairs, high), kind)
