"""One LLVM module to one object file: the only place that runs LLVM's passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import llvmlite.binding as llvm


@dataclass(frozen=True)
class Unit:
    """A module's text with what LLVM must know to compile it.

    ir: textual LLVM IR. triple, cpu, features: of the target machine. opt: 0 to 3.
    emit: "o" (object), "asm" or "llvm" (optimised IR). bitcode: files linked in; then everything
    but `keep` becomes private to the unit. name: tells the units of a model apart. relocation,
    abi: as of `TargetFacts`.
    """

    ir: str
    triple: str
    cpu: str
    features: str
    opt: int = 3
    emit: str = "o"
    bitcode: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    name: str = ""
    relocation: str = "pic"
    abi: str = ""


@lru_cache(maxsize=1)
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # the shims' cpu detection has inline assembly


@lru_cache(maxsize=16)
def target_machine(
    triple: str, cpu: str, features: str, opt: int, relocation: str = "pic", abi: str = ""
) -> llvm.TargetMachine:
    """LLVM's machine for a target."""
    _initialise()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=opt, reloc=relocation, codemodel="small", abiname=abi
    )


def compile_unit(unit: Unit) -> bytes:
    """Optimises and emits a unit. Raises RuntimeError with LLVM's message for malformed IR."""
    machine = target_machine(
        unit.triple, unit.cpu, unit.features, unit.opt, unit.relocation, unit.abi
    )
    context = llvm.create_context()  # types of an earlier unit would change the names of this one's
    module = llvm.parse_assembly(unit.ir, context)
    for path in unit.bitcode:
        with open(path, "rb") as file:
            module.link_in(llvm.parse_bitcode(file.read(), context))
    if unit.bitcode:
        _internalise(module, set(unit.keep))
    module.triple = unit.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=unit.opt)
    options.loop_vectorization = options.slp_vectorization = unit.opt >= 2
    options.loop_unrolling = unit.opt >= 2
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if unit.emit == "llvm":
        return str(module).encode()
    if unit.emit == "asm":
        return machine.emit_assembly(module).encode()
    return machine.emit_object(module)


def _internalise(module: llvm.ModuleRef, keep: set[str]) -> None:
    """Raises RuntimeError when what is to be kept is not there."""
    lacking = keep - {item.name for item in (*module.functions, *module.global_variables)}
    if lacking:
        names = ", ".join(sorted(lacking))
        raise RuntimeError(f"the runtime's bitcode lacks {names}: it is out of date (make setup)")
    for item in (*module.functions, *module.global_variables):
        if not item.is_declaration and item.name not in keep:
            item.linkage = "internal"
