"""Microcontrollers: Cortex-M, without an operating system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec
from cuvil.targets.target import Target

M4, M0 = "thumbv7em-none-eabihf", "thumbv6m-none-eabi"
LLVM_TRIPLES = {M4: "thumbv7em-none-unknown-eabihf", M0: "thumbv6m-none-unknown-eabi"}
# Run-time ABI for the Arm architecture: arithmetic that the cpu has no instructions for.
SUPPORT = dict.fromkeys(LLVM_TRIPLES, ("__aeabi_*", "__*hf2", "__*sf2", "__*df2"))


@dataclass(frozen=True)
class _Cpu:
    """float_bits: of the widest float of its FPU. registers: for sums: the FPU's, or what thumb
    code reaches. features: what LLVM is to believe beside its name. dots: as in TargetFacts."""

    triple: str
    float_bits: int = 0
    registers: int = 6
    fma: bool = False
    features: str = ""
    dots: Mapping[str, str] = field(default_factory=dict)


_DSP = {"i16x2": "llvm.arm.smlad", "s8x2": "llvm.arm.sxtb16"}
_CPUS = {
    # Its fused instruction takes longer than the two that it stands for.
    "cortex-m4": _Cpu(M4, 32, 32, dots=_DSP),
    "cortex-m7": _Cpu(M4, 32, 32, True, "-fp64", _DSP),  # many have no double precision
    "cortex-m0": _Cpu(M0),
    "cortex-m0plus": _Cpu(M0),
    "cortex-m1": _Cpu(M0),
}
CPUS = tuple(_CPUS)


def variants(target: Target) -> Sequence[VariantSpec]:
    """One build, for the cpu or the triple's least. Raises TargetError for a cpu of another."""
    cpus = [name for name, cpu in _CPUS.items() if cpu.triple == target.triple]
    name = target.cpu or cpus[0]
    if name not in cpus or target.features:
        what = f"cpu '{name}' is not" if name not in cpus else "features cannot be chosen"
        raise TargetError(f"{what} of {target.triple} (cpus: {', '.join(cpus)})")
    cpu = _CPUS[name]
    # As if caches were large: there are none to cut loops for, and copies of rows would take RAM.
    facts = TargetFacts(
        LLVM_TRIPLES[cpu.triple], name, cpu.features, pointer_bits=32, relocation="static",
        float_bits=cpu.float_bits, vector_bits=32, vector_registers=cpu.registers, fma=cpu.fma,
        integer_registers=min(cpu.registers, 10), dots=cpu.dots, l1_ways=64,
        l2_bytes=1 << 20,
    )  # fmt: skip
    return [VariantSpec(name, (), facts)]
