"""Runs generated kernels on the machine at hand, for tests and measurements only."""

import ctypes
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from cuvil.codegen.facts import TargetFacts

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def new_module(facts: TargetFacts) -> ir.Module:
    """An empty module for the target of `facts`."""
    module = ir.Module()
    module.triple = facts.triple
    return module


class HostKernel:
    """A function of a module with the kernel ABI, optimised and loaded into this process."""

    def __init__(self, module: ir.Module, name: str, facts: TargetFacts, opt: int = 3) -> None:
        target = llvm.Target.from_triple(facts.triple)
        machine = target.create_target_machine(cpu=facts.cpu, features=facts.features, opt=opt)
        module.data_layout = str(machine.target_data)
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=opt)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(parsed, passes)
        self.assembly = machine.emit_assembly(parsed)
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()
        word = ctypes.c_int64
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, word, word, ctypes.c_void_p
        )
        self.function = kind(self._engine.get_function_address(name))

    def bind(
        self, buffers: Sequence[np.ndarray], dims: Sequence[int], scratch: int = 0
    ) -> Callable[[int, int], None]:
        """A Python callable (begin, end) over fixed arguments; scratch counts bytes."""
        pointers = (ctypes.c_void_p * len(buffers))(*(x.ctypes.data for x in buffers))
        slots = (ctypes.c_int64 * max(1, len(dims)))(*dims)
        memory = aligned(scratch + 64, np.uint8)
        alive = list(buffers)

        def run(begin: int, end: int) -> None:
            assert alive is not None
            status = self.function(pointers, slots, begin, end, memory.ctypes.data)
            if status:
                raise RuntimeError(f"kernel returned {status}")

        return run


def aligned(shape: int | tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
    """Zeros whose data begin at a multiple of 64 bytes, as the arena's do."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count].view(dtype).reshape(shape)
