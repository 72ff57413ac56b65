"""The C API of a compiled library: prefixed functions over the runtime that is linked in."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.llvm_util import I32, I64, PTR
from cuvil.codegen.one_call import EXTENT, INPUT, OUTPUT, ROOM, SHAPE, Parameter, parameters
from cuvil.ir.groups import NONE, SEQUENCE
from cuvil.plan.plan import Plan

INVALID_ARGUMENT = 1  # of cuvil_status
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
    return (
        _emit_open(module, name, artefact),
        _emit_inference(module, name, artefact, plan),
    )


def _emit_open(module: ir.Module, name: str, artefact: ir.GlobalVariable) -> str:
    opener = status_function(module, "cuvil_model_open", [PTR, PTR, PTR])
    function = status_function(module, f"{name}_open", [PTR, PTR])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.ret(b.call(opener, [artefact, *function.args]))
    return function.name


def _emit_inference(module: ir.Module, name: str, artefact: ir.GlobalVariable, plan: Plan) -> str:
    """`<name>_inference` of `one_call.parameters`: packs its arguments, runs."""
    run = status_function(module, "cuvil_simple_run", [PTR, PTR, PTR, PTR])
    state = ir.GlobalVariable(module, SIMPLE, f"{name}.simple")
    state.linkage, state.initializer, state.align = "internal", ir.Constant(SIMPLE, None), 8
    takes = parameters(plan)
    function = status_function(module, f"{name}_inference", [kind_of(p) for p in takes])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    packed = Packed(b, plan)
    for parameter, argument in zip(takes, function.args, strict=True):
        packed.take(parameter, argument)
    b.ret(b.call(run, [artefact, state, *packed.arrays()]))
    return function.name


def kind_of(parameter: Parameter) -> ir.Type:
    """The IR type of a parameter."""
    single = parameter.group is None or parameter.group.kind != SEQUENCE
    return I64 if single and parameter.role in (EXTENT, ROOM) else PTR


class Packed:
    """Arguments as `cuvil_simple_run` wants them: one value for each tensor."""

    def __init__(self, b: ir.IRBuilder, plan: Plan) -> None:
        self.b = b
        self.extents: list[ir.Value] = []
        null, enough, outputs = ir.Constant(PTR, None), ir.Constant(I64, -1), len(plan.outputs)
        self.values: dict[str, list[ir.Value]] = {
            INPUT: [null] * len(plan.inputs),
            OUTPUT: [null] * outputs,
            ROOM: [enough] * outputs,
            SHAPE: [null] * outputs,
        }

    def arrays(self) -> tuple[ir.Value, ir.Value]:
        """Extents with what there is room for; data with where shapes go."""
        data = [*self.values[INPUT], *self.values[OUTPUT], *self.values[SHAPE]]
        extents = [*self.extents, *self.values[ROOM]]
        return _array(self.b, I64, extents), _array(self.b, PTR, data)

    def take(self, parameter: Parameter, argument: ir.Value) -> None:
        """Puts an argument in its places."""
        if parameter.group is None:
            self.extents.append(argument)
        elif parameter.group.kind == NONE:
            if parameter.role == INPUT:
                self._must_be_null(argument)
        else:
            kind = I64 if parameter.role == ROOM else PTR
            many = parameter.group.kind == SEQUENCE
            for k, place in enumerate(parameter.places):
                value = self._element(kind, argument, k) if many else argument
                self.values[parameter.role][place] = value

    def _element(self, kind: ir.Type, array: ir.Value, k: int) -> ir.Value:
        place = self.b.gep(array, [ir.Constant(I64, k)], source_etype=kind)
        return self.b.load(place, typ=kind)

    def _must_be_null(self, argument: ir.Value) -> None:
        """Something was given for an optional that the model was compiled without."""
        given = self.b.icmp_unsigned("!=", argument, ir.Constant(PTR, None))
        with self.b.if_then(given, likely=False):
            self.b.ret(ir.Constant(I32, INVALID_ARGUMENT))


def status_function(module: ir.Module, name: str, parameters: Sequence[ir.Type]) -> ir.Function:
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
