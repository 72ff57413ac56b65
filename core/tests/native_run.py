"""Runs a kernel as compiled code on this machine, in place of the nest interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from contraction_check import BASE, FMA16, guarded

from cuvil.codegen.contraction.harness import HostKernel, aligned, new_module
from cuvil.codegen.loops_llvm import module_text
from cuvil.codegen.nest_llvm import emit_kernel
from cuvil.codegen.slots import SlotTable
from cuvil.ir.dims import evaluate, product
from cuvil.ir.nest import KernelOp

_AVX512 = all(llvm.get_host_cpu_features().get(f) for f in ("avx512f", "avx512vl", "avx512bw"))
FACTS = FMA16 if _AVX512 else BASE


class _WithLoopHints:
    """A module whose text has its loop metadata."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __str__(self) -> str:
        self._module.data_layout = self.data_layout  # type: ignore[attr-defined]
        return module_text(self._module)


def run_native(
    kernel: KernelOp, buffers: Sequence[np.ndarray], env: Mapping[str, int] | None = None
) -> int:
    """As `nest_interpreter.run_kernel`; reading past the end of a buffer crashes."""
    known = env or {}
    module, slots = new_module(FACTS), SlotTable(())
    scratch = emit_kernel(module, kernel, FACTS, slots, "kernel")
    compiled = HostKernel(_WithLoopHints(module), "kernel", FACTS, opt=2)
    values = [known[e] if isinstance(e, str) else evaluate(e, known) for e in slots._exprs]
    dims = (ctypes.c_int64 * max(1, len(values)))(*values)
    copies = [guarded(buffer) for buffer in buffers]
    pointers = (ctypes.c_void_p * len(copies))(*(c.ctypes.data for c in copies))
    memory = aligned(scratch + 64, np.uint8).ctypes
    tasks = evaluate(product(kernel.tasks.data), known)
    status = compiled.function(pointers, dims, 0, tasks, memory.data)
    for buffer, copy in zip(buffers, copies, strict=True):
        buffer[...] = copy
    return int(status)
