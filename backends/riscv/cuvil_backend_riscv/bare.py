"""Microcontrollers of 32 bits, without an operating system."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec
from cuvil.targets.target import Target
from cuvil_backend_riscv.features import closure

RV32 = "riscv32-unknown-none-elf"
LLVM_TRIPLES = {RV32: RV32}
CPUS: dict[str, tuple[str, ...]] = {
    "generic-rv32": ("m", "c"),
    "esp32-c3": ("m", "c"),
    "esp32-c6": ("m", "a", "c"),
}
_FEATURES = ("m", "a", "f", "c", "zba", "zbb", "zbs")
# Names of libgcc and compiler-rt: arithmetic that the cpu has no instructions for.
_SHAPES = ("[sdt]i[234]", "[sd]f[23]", "[sd]f[sdt]i", "[sd]i[sd]f", "[sd]f[sd]f2", "unssi[sd]f")
SUPPORT = {RV32: (*(f"__*{shape}" for shape in _SHAPES),)}


def variants(target: Target) -> Sequence[VariantSpec]:
    """One build, for multiplication and compressed instructions where nothing else is asked for.
    Floats pass in integer registers, also where there are others. Raises TargetError for a cpu or
    feature of others."""
    if target.cpu and target.cpu not in CPUS:
        raise TargetError(f"cpu '{target.cpu}' is not of {RV32} (cpus: {', '.join(CPUS)})")
    have = set(closure(CPUS[target.cpu or "generic-rv32"]))
    for word in target.features:
        if word[1:] not in _FEATURES:
            names = ", ".join(_FEATURES)
            raise TargetError(f"feature '{word[1:]}' is not of {RV32} (features: {names})")
        have = have | closure((word[1:],)) if word[0] == "+" else have - {word[1:]}
    words = ",".join(f"+{name}" for name in _FEATURES if name in have)
    floats = "f" in have
    # As if caches were large: there are none to cut loops for, and copies of rows would take RAM.
    facts = TargetFacts(
        RV32, "generic-rv32", words, pointer_bits=32, relocation="static", abi="ilp32",
        float_bits=32 if floats else 0, vector_bits=32, vector_registers=32 if floats else 8,
        fma=floats, l1_ways=64, l2_bytes=1 << 20,
    )  # fmt: skip
    return [VariantSpec("scalar", (), facts)]
