"""Scalar functions compiled over arrays: for checks and measurements of single emitters."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I1,
    I64,
    PTR,
    VOID,
    for_range,
    i64,
    load,
    set_target,
    store,
    vector,
)
from cuvil.codegen.scalars.convert import load_convert, storage_type, store_convert
from cuvil.codegen.scalars.lowering import emit
from cuvil.ir.dtypes import DType
from cuvil.ops.scalars import scalar

__all__ = ["ArrayFunctions", "Request", "array_module", "compile_module"]


@dataclass(frozen=True)
class Request:
    """One function to compile: row, operand type, attributes, lanes per step (1: scalar code)."""

    name: str
    dtype: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    lanes: int = 1

    @property
    def symbol(self) -> str:
        """The function's name in the module."""
        attrs = "".join(f"_{k}_{v}" for k, v in sorted(self.attrs.items()))
        return f"{self.name}_{self.dtype}_{self.lanes}{attrs}"


def array_module(requests: Sequence[Request], facts: object = None) -> ir.Module:
    """A module of `void SYMBOL(out, a, b, c, n)`; n must be a multiple of the lanes."""
    module = ir.Module("scalars")
    for request in requests:
        kind = ir.FunctionType(VOID, [PTR] * 4 + [I64])
        function = ir.Function(module, kind, request.symbol)
        set.add(function.attributes, '"no-builtins"')  # no memcpy made of a copying loop
        for pointer in function.args[:4]:
            pointer.add_attribute("noalias")
        if isinstance(facts, TargetFacts):
            set_target(function, facts)
        b = ir.IRBuilder(function.append_basic_block("entry"))
        with for_range(b, i64(0), function.args[4], i64(request.lanes)) as i:
            _element(b, request, function.args, i, facts)
        b.ret_void()
    return module


def _element(
    b: ir.IRBuilder, request: Request, args: Sequence[ir.Value], i: ir.Value, facts: object
) -> None:
    row = scalar(request.name)
    operands = [
        _loaded(b, pointer, i, kind, request.lanes)
        for pointer, kind in zip(args[1:], row.operand_dtypes(request.dtype), strict=False)
    ]
    value = emit(request.name, b, operands, request.dtype, request.attrs, facts)
    if _element_of(value) == I1:
        value = store_convert(b, value, "bool")
    store(b, value, args[0], i)


def _loaded(b: ir.IRBuilder, base: ir.Value, i: ir.Value, kind: DType, lanes: int) -> ir.Value:
    value = load(b, base, i, vector(storage_type(kind), lanes))
    return load_convert(b, value, kind) if kind.kind == "bool" else value


def _element_of(value: ir.Value) -> ir.Type:
    return value.type.element if isinstance(value.type, ir.VectorType) else value.type


def compile_module(
    module: ir.Module | str, cpu: str = "", features: str = "", level: int = 2
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """The module verified and optimised for this machine's architecture, and the target used."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small"
    )
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed, machine


class ArrayFunctions:
    """Requests compiled in this process; call one with arrays. `object` is the object file."""

    def __init__(
        self,
        requests: Sequence[Request],
        facts: object = None,
        cpu: str = "",
        features: str = "",
        level: int = 2,
    ) -> None:
        text = str(array_module(requests, facts))
        self._compile(text, [r.symbol for r in requests], cpu, features, level)

    @classmethod
    def from_text(
        cls, text: str, symbols: Sequence[str], cpu: str = "", features: str = "", level: int = 2
    ) -> ArrayFunctions:
        """The functions of a module that `array_module` has made, if elsewhere."""
        functions = cls.__new__(cls)
        functions._compile(text, symbols, cpu, features, level)
        return functions

    def _compile(
        self, text: str, symbols: Sequence[str], cpu: str, features: str, level: int
    ) -> None:
        parsed, machine = compile_module(text, cpu, features, level)
        self.object = machine.emit_object(parsed)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(self.object))
        self._engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
        self._functions = {s: prototype(self._engine.get_function_address(s)) for s in symbols}

    def __call__(
        self,
        request: Request,
        *arrays: np.ndarray[Any, Any],
        out: np.ndarray[Any, Any] | None = None,
    ) -> np.ndarray[Any, Any]:
        """The function over equal-sized contiguous arrays of its operand types; `out`, where given,
        takes the results."""
        row = scalar(request.name)
        result = row.result_dtype(request.dtype, request.attrs)
        out = np.empty(arrays[0].shape, result.numpy) if out is None else out
        pointers = [a.ctypes.data for a in arrays] + [None] * (3 - len(arrays))
        self._functions[request.symbol](out.ctypes.data, *pointers, out.size)
        return out
