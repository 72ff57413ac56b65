"""The C API of a compiled library: prefixed functions over the runtime that is linked in."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.llvm_util import I32, I64, PTR, VOID
from cuvil.plan.plan import Plan

SIMPLE = ir.ArrayType(PTR, 9)  # cuvil_simple of cuvil/simple.h

# Suffix of the exported function -> the runtime's, its result, its parameters.
FORWARDED: dict[str, tuple[str, ir.Type, list[ir.Type]]] = {
    "close": ("cuvil_model_close", VOID, [PTR]),
    "context_size": ("cuvil_context_size", I32, [PTR, PTR, PTR]),
    "context_init": ("cuvil_context_init", I32, [PTR, PTR, I64, PTR]),
    "context_create": ("cuvil_context_create", I32, [PTR, PTR]),
    "context_destroy": ("cuvil_context_destroy", VOID, [PTR]),
    "context_needed": ("cuvil_context_needed", I64, [PTR]),
    "context_message": ("cuvil_context_message", PTR, [PTR]),
    "context_cancel": ("cuvil_context_cancel", VOID, [PTR]),
    "run": ("cuvil_run", I32, [PTR, PTR, PTR, PTR]),
    "shapes": ("cuvil_shapes", I32, [PTR, PTR, PTR, PTR]),
    "status_text": ("cuvil_status_text", PTR, [I32]),
}


def emit_api(
    module: ir.Module, name: str, artefact: ir.GlobalVariable, plan: Plan
) -> tuple[str, ...]:
    """Adds the functions that `<name>.h` declares; returns their names."""
    made = [_emit_open(module, name, artefact)]
    for suffix, (target, result, parameters) in FORWARDED.items():
        made.append(_emit_forward(module, f"{name}_{suffix}", target, result, parameters))
    made.append(_emit_inference(module, name, artefact, plan))
    return tuple(made)


def _emit_inference(
    module: ir.Module, name: str, artefact: ir.GlobalVariable, plan: Plan
) -> str:
    """`<name>_inference(extents..., inputs..., outputs...)`: packs its arguments, runs."""
    ports = len(plan.inputs) + len(plan.outputs)
    run = ir.Function(module, ir.FunctionType(I32, [PTR, PTR, PTR, PTR]), "cuvil_simple_run")
    state = ir.GlobalVariable(module, SIMPLE, f"{name}.simple")
    state.linkage, state.initializer, state.align = "internal", ir.Constant(SIMPLE, None), 8
    kinds = [I64] * len(plan.symbols) + [PTR] * ports
    function = ir.Function(module, ir.FunctionType(I32, kinds), f"{name}_inference")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    extents = _array(b, I64, function.args[: len(plan.symbols)])
    data = _array(b, PTR, function.args[len(plan.symbols) :])
    b.ret(b.call(run, [artefact, state, extents, data]))
    return function.name  # type: ignore[no-any-return]


def _array(b: ir.IRBuilder, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    place = b.alloca(kind, max(1, len(values)))
    for i, value in enumerate(values):
        b.store(value, b.gep(place, [ir.Constant(I64, i)], source_etype=kind))
    return place


def _emit_open(module: ir.Module, name: str, artefact: ir.GlobalVariable) -> str:
    opener = ir.Function(module, ir.FunctionType(I32, [PTR, PTR, PTR]), "cuvil_model_open")
    function = ir.Function(module, ir.FunctionType(I32, [PTR, PTR]), f"{name}_open")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.ret(b.call(opener, [artefact, *function.args]))
    return function.name  # type: ignore[no-any-return]


def _emit_forward(
    module: ir.Module, name: str, target: str, result: ir.Type, parameters: list[ir.Type]
) -> str:
    callee = ir.Function(module, ir.FunctionType(result, parameters), target)
    function = ir.Function(module, ir.FunctionType(result, parameters), name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    value = b.call(callee, list(function.args))
    if result == VOID:
        b.ret_void()
    else:
        b.ret(value)
    return name
