"""The builds of an artefact, and what the code generator may know of each."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.codegen.facts import TargetFacts
from cuvil.targets.backend import VariantSpec
from cuvil.targets.target import Target
from cuvil_backend_arm64.features import FEATURES, closure

LLVM_TRIPLES = {
    "aarch64-linux-gnu": "aarch64-unknown-linux-gnu",
    "aarch64-linux-musl": "aarch64-unknown-linux-musl",
}


def variants(target: Target) -> Sequence[VariantSpec]:
    """The baseline, which every cpu of the triple runs."""
    return [VariantSpec("neon", (), _facts(LLVM_TRIPLES[target.triple], "generic", ()))]


def _facts(triple: str, cpu: str, features: tuple[str, ...]) -> TargetFacts:
    words = ",".join(f"+{FEATURES[name].llvm}" for name in sorted(closure(features)))
    return TargetFacts(
        triple, cpu, words, vector_bits=128, vector_registers=32, fma=True, rounding=True,
        half=True, l1_bytes=32 * 1024, l1_ways=4, l2_bytes=512 * 1024,
    )  # fmt: skip
