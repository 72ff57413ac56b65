"""Looks into a table of 256 bytes, for vectors of bytes at once.

Where an instruction picks 16 bytes of a register by their places, sixteen of them, each for the
codes with one upper half, are a look into the whole table; four, where it picks from four registers
and gives zero for places beyond them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index, Size
from cuvil.codegen.contraction.tasks import TaskCount
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I8,
    I32,
    I64,
    KERNEL_TYPE,
    PTR,
    declare,
    filled,
    for_range,
    i64,
    load,
    load_invariant,
    set_target,
    store,
    vector,
    zero,
)

_TASK_BYTES = 32 * 1024
_PICKED = 16  # bytes that one instruction picks from


@dataclass(frozen=True)
class LookupSpec:
    """result[i] = table[codes[i]] for i < count; the others are indices into `buffers`."""

    count: Size
    codes: int
    table: int
    result: int


def emit_lookup(module: ir.Module, name: str, spec: LookupSpec, facts: TargetFacts) -> ir.Function:
    """Emits `i32 name(buffers, dims, begin, end, scratch)`, which computes tasks [begin, end)."""
    function = ir.Function(module, KERNEL_TYPE, name)
    set_target(function, facts)
    buffers, dims, begin, end, _ = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    at = Arith(b, dims)
    codes, table, result = (
        load_invariant(b, buffers, i, PTR) for i in (spec.codes, spec.table, spec.result)
    )
    first = at.value(at.mul(begin, _TASK_BYTES))
    last = at.value(at.minimum(at.mul(end, _TASK_BYTES), at.size(spec.count)))
    if facts.picks_bytes and not facts.scalar:
        first = _vectors(b, (codes, table, result), first, last, facts)
    with for_range(b, first, last) as i:
        code = b.zext(load(b, codes, i, I8), I64)
        store(b, load(b, table, code, I8), result, i)
    b.ret(ir.Constant(I32, 0))
    return function


def _vectors(
    b: ir.IRBuilder,
    buffers: tuple[ir.Value, ir.Value, ir.Value],
    first: ir.Value,
    last: ir.Value,
    facts: TargetFacts,
) -> ir.Value:
    """Whole vectors from `first` on; gives where they end."""
    codes, table, result = buffers
    look = _four_tables if facts.byte_table else _sixteen_tables
    lanes = 16 if facts.byte_table else facts.vector_bits // 8
    kind = vector(I8, lanes)
    found = look(b, table, kind, facts)
    left = b.sub(last, first)
    stop = b.add(first, b.sub(left, b.srem(left, i64(lanes))))
    with for_range(b, first, stop, i64(lanes)) as i:
        store(b, found(load(b, codes, i, kind)), result, i)
    return b.select(b.icmp_signed(">", stop, first), stop, first)


_Look = Callable[[ir.Value], ir.Value]  # a vector of codes -> their entries


def _sixteen_tables(b: ir.IRBuilder, table: ir.Value, kind: ir.Type, facts: TargetFacts) -> _Look:
    pick = declare(b.module, facts.byte_pick, kind, [kind, kind])
    parts = [_spread(b, load(b, table, i64(at), vector(I8, _PICKED)), kind.count)
             for at in range(0, 256, _PICKED)]  # fmt: skip

    def look(code: ir.Value) -> ir.Value:
        upper, place = (b.and_(code, filled(kind, mask)) for mask in (0xF0, 0x0F))
        found: ir.Value = zero(kind)
        for nth, part in enumerate(parts):
            mine = b.icmp_unsigned("==", upper, filled(kind, nth * _PICKED))
            found = b.select(mine, b.call(pick, [part, place]), found)
        return found

    return look


def _four_tables(b: ir.IRBuilder, table: ir.Value, kind: ir.Type, facts: TargetFacts) -> _Look:
    pick = declare(b.module, facts.byte_table, kind, [kind] * 5)
    parts = [load(b, table, i64(at), kind) for at in range(0, 256, _PICKED)]

    def look(code: ir.Value) -> ir.Value:
        found = [
            b.call(pick, [*parts[4 * nth : 4 * nth + 4], b.xor(code, filled(kind, 64 * nth))])
            for nth in range(4)
        ]  # the places that are below 64 are those of one's own codes
        return b.or_(b.or_(found[0], found[1]), b.or_(found[2], found[3]))

    return look


def _spread(b: ir.IRBuilder, part: ir.Value, lanes: int) -> ir.Value:
    """16 bytes in every 128 bits of a vector."""
    places = [i % _PICKED for i in range(lanes)]
    return b.shuffle_vector(
        part, ir.Constant(part.type, ir.Undefined), ir.Constant(ir.VectorType(I32, lanes), places)
    )


@TaskCount
def task_count(spec: LookupSpec, facts: TargetFacts, at: Arith) -> Index:
    """Tasks of the kernel."""
    return at.ceil_div(at.size(spec.count), _TASK_BYTES)
