"""Calls of the runtime's functions on strings; an element in a register is its 16 bytes."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.llvm_util import I32, I64, PTR, declare, i64, stack_array
from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ops.string_meaning import CALLS

__all__ = ["COMPARISONS", "PREFIX", "called", "emit_call", "emit_comparison"]

PREFIX = "cuvil_string_"
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ALIGN = dtype_of("string").align


def called(module: ir.Module) -> set[str]:
    """The runtime's functions that a module of kernels calls."""
    return {name for name in module.globals if name.startswith("cuvil_")}


def emit_call(
    b: ir.IRBuilder,
    fn: str,
    args: Sequence[ir.Value],
    table: ir.Value | None = None,
    run: ir.Value | None = None,
) -> tuple[ir.Value, ir.Value]:
    """(result, status) of function `fn` of `ops.string_meaning` on strings, then numbers (i64)."""
    row = CALLS[fn]
    kind = ir.IntType(dtype_of("string").bits) if row.result == "string" else I64
    texts, numbers = args[: row.texts], args[row.texts :]
    function = declare(b.module, PREFIX + fn, I32, [PTR] * 5)
    function.attributes.add("nounwind")
    null = ir.Constant(PTR, None)
    places = [_filled(b, texts), _filled(b, numbers)]
    with b.goto_entry_block():
        result = stack_array(b, kind, 1)
    status = b.call(function, [run or null, *places, table or null, result])
    value = b.load(result, typ=kind, align=_ALIGN)
    return (b.icmp_unsigned("!=", value, i64(0)) if row.result == "bool" else value), status


def _filled(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """The values side by side in memory of the stack's; NULL for none."""
    if not values:
        return ir.Constant(PTR, None)
    kind = values[0].type
    with b.goto_entry_block():
        place = stack_array(b, kind, len(values))
    for i, value in enumerate(values):
        b.store(value, b.gep(place, [i64(i)], source_etype=kind), align=_ALIGN)
    return place


def emit_comparison(b: ir.IRBuilder, fn: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Two strings compared by a row of the scalar table: eq, ne, lt, le, gt or ge."""
    order, _ = emit_call(b, "order", [left, right])
    return b.icmp_signed(COMPARISONS[fn], order, i64(0))
