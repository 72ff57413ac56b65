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
    address,
    declare,
    filled,
    fma,
    load,
    mangled,
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
    signed. Sums of bytes are exact and wrap. x went through `numbers_of`; where `is_shifted`, the
    sum is too low by what `surplus` is below zero.
    """
    if dtype not in GROUPS:
        return fma(b, x, y, total, facts.fma)
    lanes = x.type.count if isinstance(x.type, ir.VectorType) else 1
    if dtype in facts.dots and lanes == facts.lanes(dtype):
        if facts.lane_products and dtype == "bf16x2":
            x, y = y, x  # instructions take the lane of their second factor
        return _call(b, facts.dots[dtype], x, y, total, dtype)
    if dtype == "u8s8x4":
        if is_shifted(dtype, lanes, facts):
            return _call(b, facts.dots[_SHIFTED], y, x, total, dtype)
        if facts.scalar and "s8x2" in facts.dots:
            return _add_halves(b, x, y, total, facts)
        pairs = facts.dots.get("i16x2") if lanes == facts.lanes(dtype) else None
        return _add_pairs(b, x, y, total, pairs) if pairs else _add_bytes(b, x, y, total)
    for left, right in zip(_halves(b, x), _halves(b, y), strict=True):
        total = fma(b, left, right, total, facts.fma)
    return total


def dot_matrices(
    b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value, dtype: str, facts: TargetFacts
) -> ir.Value:
    """total + x * y for 2x2 sums: x, y are two rows of A and two columns of B, of two groups each;
    the numbers in groups are as for `dot`."""
    return _call(b, facts.matrices[dtype], x, y, total, dtype)


_BITS = {"bf16x2": 16, "u8s8x4": 8}
_SHIFTED = "s8s8x4"
_HALF = 0x80808080  # 128 in each byte, which is -128 where it is signed


def _call(
    b: ir.IRBuilder, name: str, x: ir.Value, y: ir.Value, total: ir.Value, dtype: str
) -> ir.Value:
    lanes = x.type.count
    kind = vector(BFloat() if dtype == "bf16x2" else I8, 32 * lanes // _BITS[dtype])
    function = declare(b.module, name, total.type, [total.type, kind, kind])
    return b.call(function, [total, b.bitcast(x, kind), b.bitcast(y, kind)])


def part_bits(dtype: str) -> int:
    """Bits of one part of a group."""
    return _BITS[dtype]


def align_of(dtype: str) -> int:
    """To how many bytes A is aligned, 0 for its elements: groups lie where their parts may lie."""
    return part_bits(dtype) // 8 if dtype in GROUPS else 0


def in_parts(dtype: str, facts: TargetFacts) -> bool:
    """Whether the parts of groups are multiplied one after another, each in a step of its own: for
    cpus that work in order, with no instruction for several."""
    return dtype in GROUPS and facts.in_order and not facts.dots


def upper_part(b: ir.IRBuilder, groups: ir.Value, dtype: str) -> ir.Value:
    """The number that the upper bits of each group of B are."""
    if dtype == "u8s8x4":
        return b.ashr(groups, filled(groups.type, 24))
    return b.bitcast(b.and_(groups, filled(groups.type, 0xFFFF0000)), shaped(groups, F32))


def lone_part(b: ir.IRBuilder, row: ir.Value, place: ir.Value, dtype: str) -> ir.Value:
    """row[place], counted in parts of groups of A, as a number."""
    if dtype == "u8s8x4":
        return b.zext(load(b, row, place, I8), I32)
    # In LLVM's own type, or it would widen the numbers of several rows in one vector.
    part = b.load(address(b, row, place, I16), typ=BFloat(), align=2)
    return b.fpext(part, F32)


def is_shifted(dtype: str, lanes: int, facts: TargetFacts) -> bool:
    """Whether unsigned bytes are multiplied as what they are above 128; see `shifted`."""
    known = _SHIFTED in facts.dots and dtype not in facts.dots
    return dtype == "u8s8x4" and known and lanes == facts.lanes(dtype)


def numbers_of(
    b: ir.IRBuilder, loaded: ir.Value, dtype: str, lanes: int, facts: TargetFacts
) -> ir.Value:
    """A number of A, a group or a vector of them, as `dot` wants it for B's vectors of `lanes`.

    LLVM takes a lane of pairs for an operand only where it sees a vector of bfloat16: the fence
    keeps it from looking at how that was loaded.
    """
    if is_shifted(dtype, lanes, facts):
        return b.xor(loaded, filled(loaded.type, _HALF))
    many = isinstance(loaded.type, ir.VectorType)
    if dtype != "bf16x2" or dtype not in facts.dots or not many:
        return loaded
    kind = vector(BFloat(), 2 * loaded.type.count)
    function = declare(b.module, f"llvm.arithmetic.fence.{mangled(kind)}", kind, [kind])
    return b.bitcast(b.call(function, [b.bitcast(loaded, kind)]), loaded.type)


def surplus(b: ir.IRBuilder, y: ir.Value, total: ir.Value, facts: TargetFacts) -> ir.Value:
    """total - 128 * y per lane of groups."""
    return _call(b, facts.dots[_SHIFTED], y, filled(y.type, _HALF), total, "u8s8x4")


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


def _add_halves(
    b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value, facts: TargetFacts
) -> ir.Value:
    """The same in registers that hold two 16-bit integers."""
    widen = declare(b.module, facts.dots["s8x2"], I32, [I32])
    multiply = declare(b.module, facts.dots["i16x2"], I32, [I32] * 3)
    turn = declare(b.module, "llvm.fshr.i32", I32, [I32] * 3)
    eight, bytes_0_and_2 = ir.Constant(I32, 8), ir.Constant(I32, 0x00FF00FF)
    low = b.and_(x, bytes_0_and_2), b.call(widen, [y])
    high = b.and_(b.lshr(x, eight), bytes_0_and_2), b.call(widen, [b.call(turn, [y, y, eight])])
    for pair in (low, high):
        total = b.call(multiply, [*pair, total])
    return total


def _add_bytes(b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    for place in range(4):
        up = filled(x.type, 24 - 8 * place)
        down = filled(x.type, 24)
        left, right = b.lshr(b.shl(x, up), down), b.ashr(b.shl(y, up), down)
        total = b.add(total, b.mul(left, right))
    return total
