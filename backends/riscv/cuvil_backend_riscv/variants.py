"""The builds of an artefact, and what the code generator may know of each.

Code for registers of at least N bits is right on wider ones too, only less fast, and wrong on
narrower ones: so a build for wide registers requires them, and the last one with vectors takes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec
from cuvil.targets.features import amended
from cuvil.targets.target import Target
from cuvil_backend_riscv.features import CPUS, FEATURES, RV64GC, closure

LLVM_TRIPLES = {
    "riscv64-linux-gnu": "riscv64-unknown-linux-gnu",
    "riscv64-linux-musl": "riscv64-unknown-linux-musl",
}


@dataclass(frozen=True)
class _Build:
    """needs: features beside rv64gc. bits: of a vector register, 0 without them. products: as in
    VariantSpec."""

    name: str
    needs: tuple[str, ...]
    bits: int
    products: frozenset[str] = frozenset()


_HALVES = frozenset({"f16"})
_BUILDS = (
    _Build("rvv512_fp16", ("zvl512b", "zvfh"), 512, _HALVES),
    _Build("rvv512", ("zvl512b",), 512),
    _Build("rvv256_fp16", ("zvl256b", "zvfh"), 256, _HALVES),
    _Build("rvv256", ("zvl256b",), 256),
    _Build("rvv_fp16", ("v", "zvfh"), 128, _HALVES),
    _Build("rvv", ("v",), 128),
    _Build("scalar", (), 0),
)


def variants(target: Target) -> Sequence[VariantSpec]:
    """Without a cpu: builds for vector registers of 512, 256 and at least 128 bits, and for none.
    With one, or with features: its best build for models with products of half floats, and the best
    for others. Bit instructions are used where they are asked for by name alone, since kernels
    before Linux 6.4 do not tell of them. Raises TargetError for what is not of 64 bits, and where
    rv64gc lacks a part.
    """
    triple = LLVM_TRIPLES[target.triple]
    if not target.cpu and not target.features:
        return [_variant(triple, build, ()) for build in _BUILDS]
    if target.cpu and target.cpu not in CPUS:
        known = ", ".join(CPUS)
        raise TargetError(f"cpu '{target.cpu}' is not of {target.triple} (cpus: {known})")
    have = _features(target)
    fitting = [build for build in _BUILDS if have >= closure(build.needs)]
    best = next(build for build in fitting if not build.products)
    special = [build for build in fitting if build.products and build.bits == best.bits]
    named = closure(tuple(word[1:] for word in target.features if word[0] == "+"))
    extra = tuple(name for name in named & have if "v" not in closure((name,)))
    return [_variant(triple, build, extra) for build in (*special, best)]


def _features(target: Target) -> set[str]:
    """All that a target has."""
    have = amended(FEATURES, (*RV64GC, *CPUS.get(target.cpu, ())), target.features)
    lacking = [name for name in RV64GC if name not in have]
    if lacking:
        raise TargetError(f"{target.triple} is rv64gc: it has no builds without {lacking[0]}")
    return have


def _variant(triple: str, build: _Build, extra: tuple[str, ...]) -> VariantSpec:
    present = closure((*RV64GC, *build.needs, *extra))
    features = tuple(name for name in FEATURES if name in present)
    words = ",".join([*(f"+{name}" for name in features), *_SCHEDULING])
    facts = TargetFacts(
        triple, "generic-rv64", words, vector_bits=build.bits, vector_registers=32, vector_group=4,
        in_order=True, scalar_products=True, fma=True, rounding=True, half="zvfh" in present,
        l1_ways=4, tune="generic-ooo", abi="lp64d",
    )  # fmt: skip
    if not build.bits:
        facts = replace(facts, **_PAIRS)
    return VariantSpec(build.name, features, facts, build.products)


# Two numbers stand for a vector.
_PAIRS: dict[str, Any] = {
    "vector_bits": 64, "vector_registers": 16, "vector_group": 1, "scalar_products": False,
}  # fmt: skip
# With another cpu's costs LLVM keeps more values than there are registers for; with its clustering
# of loads it moves early ones together again.
_SCHEDULING = ("+disable-misched-load-clustering",)
