"""32-bit Arm under Linux: ARMv7-A with hardware floating point."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec
from cuvil.targets.target import Target
from cuvil_backend_arm64.features import NARROW

LLVM_TRIPLES = {"armv7-linux-gnueabihf": "armv7-unknown-linux-gnueabihf"}
_ARITHMETIC: tuple[str, ...] = ("uldivmod", "ldivmod", "uidivmod", "idivmod", "uidiv", "idiv")
_ARITHMETIC += ("l2d", "ul2d", "l2f", "ul2f", "d2lz", "d2ulz", "f2lz", "f2ulz")
HELPERS = dict.fromkeys(LLVM_TRIPLES, tuple(f"__aeabi_{name}" for name in _ARITHMETIC))
CPUS: dict[str, tuple[str, ...]] = {
    "cortex-a5": (),
    "cortex-a7": NARROW,
    "cortex-a8": ("neon",),
    "cortex-a9": (),
    "cortex-a15": NARROW,
    "cortex-a17": NARROW,
}


def variants(target: Target) -> Sequence[VariantSpec]:
    """With NEON and fused multiply-add, and for every cpu of the triple; of a cpu or of features,
    the one that it runs."""
    if target.cpu and target.cpu not in CPUS:
        raise TargetError(f"{target.cpu} does not run {target.triple}")
    builds = [_build(target, "neon", NARROW), _build(target, "vfp", ())]
    if not target.cpu and not target.features:
        return builds
    for word in target.features:
        if word[1:] not in NARROW:
            raise TargetError(f"{target.triple} knows no feature '{word[1:]}'")
    have = set(CPUS.get(target.cpu, ())) | {w[1:] for w in target.features if w[0] == "+"}
    have -= {w[1:] for w in target.features if w[0] == "-"}
    return builds[:1] if have >= set(NARROW) else builds[1:]


def _build(target: Target, name: str, needs: tuple[str, ...]) -> VariantSpec:
    """Without NEON vectors are four of the 32 single registers: few, but of the same shape, so that
    builds share plan and weights."""
    words = "+neon,+vfp4" if needs else "-neon,-d32,+vfp3d16"
    wide = bool(needs)
    facts = TargetFacts(
        LLVM_TRIPLES[target.triple], target.cpu or "generic", words, pointer_bits=32,
        vector_bits=128, vector_registers=16 if wide else 8, fma=wide,
        l1_bytes=32 * 1024, l1_ways=4, l2_bytes=256 * 1024,
    )  # fmt: skip
    return VariantSpec(name, needs, facts)
