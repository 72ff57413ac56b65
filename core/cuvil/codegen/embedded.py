"""Models for targets without an operating system: one function, in memory of the caller's.

Nothing is allocated there, so what a run needs must be known when the model is compiled.
"""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.abi import ARENA_ALIGN
from cuvil.codegen.api_llvm import Packed, kind_of, status_function
from cuvil.codegen.llvm_util import PTR
from cuvil.codegen.one_call import parameters
from cuvil.codegen.slots import SlotTable
from cuvil.errors import OptionError, UnsupportedError
from cuvil.ir import host
from cuvil.ir.dims import Dim, evaluate
from cuvil.plan.plan import Plan

RUN = "cuvil_embedded_run"  # of cuvil/embedded.h
_SLOT_BYTES = 8


def refuse_unbounded(plan: Plan, triple: str) -> None:
    """Raises OptionError or UnsupportedError where a run of the plan would need an allocator."""
    name = plan.name
    if plan.devices:
        raise OptionError(f"{name}: {triple} has no devices beside its cpu")
    for symbol, (_, most) in zip(plan.symbols, plan.bounds, strict=True):
        if most is None:
            raise OptionError(
                f"{name}: {triple} has no allocator, so the memory for every extent must be known: "
                f"bound '{symbol}' (--bound {symbol}=1:64) or fix it (--dim {symbol}=16)"
            )
    for port in plan.outputs:
        if plan.is_unbounded(port):
            raise UnsupportedError(
                f"{name}: output '{port.name}' has no upper bound, and {triple} has no allocator: "
                "change the model so that its extents are bounded"
            )
    growing = next((op for op in plan.program.body.walk() if isinstance(op, host.GrowOp)), None)
    if growing is not None:
        raise UnsupportedError(
            f"{name}: {_behind(plan, growing)} holds a value without an upper bound, and {triple} "
            "has no allocator: change the model so that its extents are bounded"
        )
    if any(isinstance(op, host.RunOp) for op in plan.program.body.walk()):
        raise UnsupportedError(
            f"{name} makes strings, and {triple} has no allocator for their bytes"
        )


def _behind(plan: Plan, growing: host.GrowOp) -> str:
    """The nodes of the first launch behind a buffer's growth."""
    found = False
    for op in plan.program.body.walk():
        found = found or op is growing
        if found and isinstance(op, host.LaunchOp):
            _, _, nodes = plan.sites[op.site.value.data].partition("\t")
            return f"node {nodes}"
    return "the model"


def memory_bytes(plan: Plan, slots: SlotTable, scratch: int) -> int:
    """What a run needs at most of the caller's memory, whatever its alignment: slots, the threads'
    scratch, arena, as `cuvil_embedded_run` lays them out. Call it when all slots are known."""
    most = {s: high for s, (_, high) in zip(plan.symbols, plan.bounds, strict=True)}
    arena: Dim | None = plan.most(plan.arena_bytes)
    assert arena is not None and None not in most.values()
    parts = (_SLOT_BYTES * slots.count, scratch, evaluate(arena, most))  # type: ignore[arg-type]
    return ARENA_ALIGN - 1 + sum(-(-part // ARENA_ALIGN) * ARENA_ALIGN for part in parts)


def emit_embedded_api(
    module: ir.Module, name: str, artefact: ir.GlobalVariable, plan: Plan, pointer_bits: int
) -> tuple[str, ...]:
    """Adds `<name>_inference(memory, bytes, ...)`: the rest as in `one_call.parameters`."""
    size = ir.IntType(pointer_bits)
    run = status_function(module, RUN, [PTR, PTR, size, PTR, PTR])
    takes = parameters(plan)
    function = status_function(module, f"{name}_inference", [PTR, size, *map(kind_of, takes)])
    packed = Packed(ir.IRBuilder(function.append_basic_block("entry")), plan)
    memory, given, *arguments = function.args
    for parameter, argument in zip(takes, arguments, strict=True):
        packed.take(parameter, argument)
    packed.b.ret(packed.b.call(run, [artefact, memory, given, *packed.arrays()]))
    return (function.name,)
