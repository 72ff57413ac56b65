"""A module of `py` functions to one LLVM module with one entry."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import PTR, VOID, set_target
from cuvil.codegen.python import arrays, containers, numbers, scalars, texts
from cuvil.codegen.python.control import FunctionEmitter
from cuvil.codegen.python.emit import Emit
from cuvil.codegen.python.values import llvm_type, load_value, slots, store_value
from cuvil.codegen.unit import Unit
from cuvil.ir import py

ENTRY = "cuvil_entry"
TABLES = (arrays, containers, numbers, scalars, texts)  # imported for their rows


def emit_module(functions: Sequence[py.FuncOp], facts: TargetFacts, opt: int) -> Unit:
    """The unit whose function ENTRY(arguments, result, context) calls the first function.

    Arguments and result are slots. It imports the runtime's support functions (`py_*`) and C's
    math functions by name.
    """
    module = ir.Module()
    made = {op.sym_name.data: _declared(module, op, facts) for op in functions}
    constants: dict[bytes, ir.GlobalVariable] = {}
    for op in functions:
        function = made[op.sym_name.data]
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        first = builder.append_basic_block("start")
        builder.branch(first)
        builder.position_at_end(first)
        emit = Emit(builder, function.args[0], facts, constants)
        FunctionEmitter(emit, op, made).run()
    _emit_entry(module, functions[0], made[functions[0].sym_name.data], facts)
    return Unit(str(module), facts.triple, facts.cpu, facts.features, opt, name="python")


def _declared(module: ir.Module, op: py.FuncOp, facts: TargetFacts) -> ir.Function:
    kinds = [llvm_type(py.type_of(a)) for a in op.body.block.args]
    signature = ir.FunctionType(llvm_type(op.result.data), [PTR, *kinds])
    function = ir.Function(module, signature, f"py.{op.sym_name.data}")
    function.linkage = "internal"
    set_target(function, facts)
    return function


def _emit_entry(
    module: ir.Module, op: py.FuncOp, function: ir.Function, facts: TargetFacts
) -> None:
    entry = ir.Function(module, ir.FunctionType(VOID, [PTR, PTR, PTR]), ENTRY)
    set_target(entry, facts)
    arguments, result, context = entry.args
    b = ir.IRBuilder(entry.append_basic_block("entry"))
    values, at = [], 0
    for argument in op.body.block.args:
        kind = py.type_of(argument)
        values.append(load_value(b, arguments, kind, at))
        at += slots(kind)
    store_value(b, b.call(function, [context, *values]), result, op.result.data)
    b.ret_void()
