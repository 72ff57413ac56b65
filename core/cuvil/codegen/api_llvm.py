"""The C API of a compiled library: prefixed functions over the runtime that is linked in."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.llvm_util import I32, I64, PTR
from cuvil.plan.plan import Plan

SIMPLE = ir.ArrayType(PTR, 9)  # cuvil_simple of cuvil/simple.h

# Suffix of the exported function -> the runtime's function, which is exported under that name.
RENAMED: dict[str, str] = {
    "close": "cuvil_model_close",
    "variant": "cuvil_model_variant",
    "threads": "cuvil_model_threads",
    "context_size": "cuvil_context_size",
    "context_init": "cuvil_context_init",
    "context_create": "cuvil_context_create",
    "context_destroy": "cuvil_context_destroy",
    "context_needed": "cuvil_context_needed",
    "context_message": "cuvil_context_message",
    "context_cancel": "cuvil_context_cancel",
    "context_uncancel": "cuvil_context_uncancel",
    "context_set_time_limit": "cuvil_context_set_time_limit",
    "context_set_profile": "cuvil_context_set_profile",
    "shapes": "cuvil_shapes",
    "run": "cuvil_run",
    "status_text": "cuvil_status_text",
    "pool_create": "cuvil_pool_create",
    "pool_release": "cuvil_pool_release",
}


# The runtime's functions that code of a model calls by name.
CALLED = ("cuvil_model_open", "cuvil_simple_run")


def renamed(name: str) -> dict[str, str]:
    """The runtime's functions, and what a library of model `name` exports them as."""
    return {target: f"{name}_{suffix}" for suffix, target in RENAMED.items()}


def emit_api(
    module: ir.Module, name: str, artefact: ir.GlobalVariable, plan: Plan
) -> tuple[str, ...]:
    """Adds the functions of `<name>.h` that know the model; returns their names."""
    made = [_emit_open(module, name, artefact)]
    if not plan.is_unbounded():
        made.append(_emit_inference(module, name, artefact, plan))
    return tuple(made)


def _emit_open(module: ir.Module, name: str, artefact: ir.GlobalVariable) -> str:
    opener = _status_function(module, "cuvil_model_open", [PTR, PTR, PTR])
    function = _status_function(module, f"{name}_open", [PTR, PTR])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.ret(b.call(opener, [artefact, *function.args]))
    return function.name


def _emit_inference(module: ir.Module, name: str, artefact: ir.GlobalVariable, plan: Plan) -> str:
    """`<name>_inference(extents..., inputs..., outputs..., shapes...)`: packs its arguments, runs.

    shapes: of outputs whose extents only the run knows."""
    ports = len(plan.inputs) + len(plan.outputs)
    found = [plan.is_produced(p) for p in plan.outputs]
    run = _status_function(module, "cuvil_simple_run", [PTR, PTR, PTR, PTR])
    state = ir.GlobalVariable(module, SIMPLE, f"{name}.simple")
    state.linkage, state.initializer, state.align = "internal", ir.Constant(SIMPLE, None), 8
    kinds = [I64] * len(plan.symbols) + [PTR] * (ports + sum(found))
    function = _status_function(module, f"{name}_inference", kinds)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    extents = _array(b, I64, function.args[: len(plan.symbols)])
    given = list(function.args[len(plan.symbols) :])
    shapes = [given.pop(ports) if f else ir.Constant(PTR, None) for f in found]
    data = _array(b, PTR, [*given, *shapes])
    b.ret(b.call(run, [artefact, state, extents, data]))
    return function.name


def _status_function(module: ir.Module, name: str, parameters: Sequence[ir.Type]) -> ir.Function:
    """A function that returns cuvil_status; C ABIs want it extended to a register's width."""
    function = ir.Function(module, ir.FunctionType(I32, parameters), name)
    function.return_value.add_attribute("signext")
    function.attributes.add("nounwind")
    return function


def _array(b: ir.IRBuilder, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    place = b.alloca(kind, max(1, len(values)))
    for i, value in enumerate(values):
        b.store(value, b.gep(place, [ir.Constant(I64, i)], source_etype=kind))
    return place
