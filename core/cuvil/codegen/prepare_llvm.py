"""The function that fills the dim slots for new input shapes and checks what they must satisfy."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen import abi
from cuvil.codegen.dims_llvm import compute, dim_value, slot_address
from cuvil.codegen.llvm_util import I32, i64
from cuvil.codegen.slots import SlotTable
from cuvil.ir import host
from cuvil.ir.dims import Dim, symbols
from cuvil.plan.plan import Plan

UNBOUNDED = -1


def emit_prepare(module: ir.Module, plan: Plan, slots: SlotTable, name: str) -> ir.Function:
    """Adds `int32 name(int64_t *dims)`: computes all derived slots, writes the bounds of extents
    of outputs that a run finds, then gives 0, or 1 + the site of a check that fails. Call it when
    no more slots will be asked for."""
    function = ir.Function(module, abi.PREPARE, name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    dims = function.args[0]
    for slot, expr in slots.derived():
        b.store(compute(b, dims, slots, expr), slot_address(b, dims, slot))
    for slot, most in _produced(plan, slots):
        bound = i64(UNBOUNDED) if most is None else compute(b, dims, slots, most)
        b.store(bound, slot_address(b, dims, slot))
    for op in plan.program.body.block.ops:
        if isinstance(op, host.CheckOp) and is_prepared(op, slots):
            sides = [dim_value(b, dims, slots, side) for side in sides_of(op)]
            with b.if_then(b.not_(relation(b, op, *sides)), likely=False):
                b.ret(ir.Constant(I32, op.site.value.data + 1))
    b.ret(ir.Constant(I32, 0))
    return function


def _produced(plan: Plan, slots: SlotTable) -> list[tuple[int, Dim | None]]:
    """(slot, upper bound or None) of the outputs' extents that a run finds."""
    dims = {d for port in plan.outputs for d in port.type.dims}
    known = set(slots.inputs)
    found = [d for d in dims if not known.issuperset(symbols(d))]
    return sorted(((slots.of(d), plan.most(d)) for d in found), key=lambda row: row[0])


def sides_of(op: host.CheckOp) -> tuple[Dim, Dim]:
    return op.left.data[0], op.right.data[0]


def relation(b: ir.IRBuilder, op: host.CheckOp, left: ir.Value, right: ir.Value) -> ir.Value:
    """Whether a check holds."""
    return b.icmp_signed("==" if op.relation.data == "eq" else ">=", left, right)


def is_prepared(op: host.CheckOp, slots: SlotTable) -> bool:
    """Whether a check is made once per shape: it is of input symbols, in no region."""
    names = {name for side in sides_of(op) for name in symbols(side)}
    return isinstance(op.parent_op(), host.ProgramOp) and names <= set(slots.inputs)
