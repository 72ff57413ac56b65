"""Microcontrollers: Cortex-M, without an operating system."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec
from cuvil.targets.target import Target

M4, M0 = "thumbv7em-none-eabihf", "thumbv6m-none-eabi"
LLVM_TRIPLES = {M4: "thumbv7em-none-unknown-eabihf", M0: "thumbv6m-none-unknown-eabi"}
CPUS: dict[str, tuple[str, ...]] = {
    "cortex-m4": (M4,),
    "cortex-m7": (M4,),
    "cortex-m0": (M0,),
    "cortex-m0plus": (M0,),
    "cortex-m1": (M0,),
}  # cpu -> the triples that it runs
# Run-time ABI for the Arm architecture: arithmetic that the cpu has no instructions for.
SUPPORT = dict.fromkeys(LLVM_TRIPLES, ("__aeabi_*", "__*hf2", "__*sf2", "__*df2"))


def variants(target: Target) -> Sequence[VariantSpec]:
    """One build, for the cpu or the triple's least. Raises TargetError for a cpu of another."""
    cpus = [cpu for cpu, triples in CPUS.items() if target.triple in triples]
    cpu = target.cpu or cpus[0]
    if cpu not in cpus or target.features:
        what = f"cpu '{cpu}' is not" if cpu not in cpus else "features cannot be chosen"
        raise TargetError(f"{what} of {target.triple} (cpus: {', '.join(cpus)})")
    return [VariantSpec(cpu, (), _facts(target.triple, cpu))]


def _facts(triple: str, cpu: str) -> TargetFacts:
    """No vectors; sums are kept in the 32 registers of the FPU, or in what thumb code can reach."""
    return TargetFacts(
        LLVM_TRIPLES[triple], cpu, _FEATURES.get(cpu, ""), pointer_bits=32, relocation="static",
        vector_bits=32, vector_registers=32 if triple == M4 else 6,
        l1_bytes=8 * 1024, l1_ways=4, l2_bytes=16 * 1024,
    )  # fmt: skip


_FEATURES = {"cortex-m7": "-fp64"}  # many have no double precision
