"""The builds of an artefact, and what the code generator may know of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cuvil.codegen.facts import TargetFacts
from cuvil.targets.backend import VariantSpec
from cuvil.targets.features import amended
from cuvil.targets.target import Target
from cuvil_backend_x86.features import (
    AVX2,
    AVX2_VNNI,
    AVX512,
    AVX512_BF16,
    AVX512_VNNI,
    CPUS,
    FEATURES,
)

LLVM_TRIPLES = {
    "x86_64-linux-gnu": "x86_64-unknown-linux-gnu",
    "x86_64-linux-musl": "x86_64-unknown-linux-musl",
}


def variants(target: Target) -> Sequence[VariantSpec]:
    """Without a cpu: AVX-512, AVX2 and baseline builds. With one: its best build alone.

    Before an AVX-512 build come those that multiply bfloat16 or bytes, for models that do.
    """
    triple = LLVM_TRIPLES[target.triple]
    if not target.cpu and not target.features:
        builds = _avx512_bf16, _avx512_vnni, _avx512, _avx2_vnni, _avx2, _baseline
        return [build(triple) for build in builds]
    features = amended(FEATURES, CPUS.get(target.cpu, ()), target.features)
    if features >= set(AVX512_BF16):
        return [_avx512_bf16(triple), _avx512_vnni(triple), _avx512(triple)]
    if features >= set(AVX512_VNNI):
        return [_avx512_vnni(triple), _avx512(triple)]
    if features >= set(AVX512):
        return [_avx512(triple)]
    if features >= set(AVX2_VNNI):
        return [_avx2_vnni(triple), _avx2(triple)]
    if features >= set(AVX2):
        return [_avx2(triple)]
    return [_baseline(triple)]


_BYTES = {"u8s8x4": "llvm.x86.avx512.vpdpbusd.512"}
_PAIRS = {"bf16x2": "llvm.x86.avx512bf16.dpbf16ps.512"}


def _avx512_vnni(triple: str) -> VariantSpec:
    facts = replace(_avx512(triple).facts, features="+avx512vnni", dots=_BYTES)
    return VariantSpec("avx512_vnni", AVX512_VNNI, facts, frozenset({"u8"}))


def _avx512_bf16(triple: str) -> VariantSpec:
    facts = replace(
        _avx512(triple).facts, features="+avx512bf16,+avx512vnni", dots={**_PAIRS, **_BYTES}
    )
    return VariantSpec("avx512_bf16", AVX512_BF16, facts, frozenset({"bf16"}))


def _avx512(triple: str) -> VariantSpec:
    facts = TargetFacts(
        triple, "x86-64-v4", "", vector_bits=512, vector_registers=32, fma=True,
        rounding=True, half=True, l1_bytes=32 * 1024, l1_ways=8,
        l2_bytes=1024 * 1024, prefer_vector_width=512,
        dots={"i16x2": "llvm.x86.avx512.pmaddw.d.512"}, byte_pick="llvm.x86.avx512.pshuf.b.512",
    )  # fmt: skip
    return VariantSpec("avx512", AVX512, facts)


def _avx2_vnni(triple: str) -> VariantSpec:
    dots = {"u8s8x4": "llvm.x86.avx512.vpdpbusd.256"}
    facts = replace(_avx2(triple).facts, features="+avxvnni", dots=dots)
    return VariantSpec("avx2_vnni", AVX2_VNNI, facts, frozenset({"u8"}))


def _avx2(triple: str) -> VariantSpec:
    facts = TargetFacts(
        triple, "x86-64-v3", "", vector_bits=256, vector_registers=16, fma=True,
        rounding=True, half=True, l1_bytes=32 * 1024, l1_ways=8,
        l2_bytes=256 * 1024, prefer_vector_width=256,
        dots={"i16x2": "llvm.x86.avx2.pmadd.wd"}, byte_pick="llvm.x86.avx2.pshuf.b",
    )  # fmt: skip
    return VariantSpec("avx2", AVX2, facts)


def _baseline(triple: str) -> VariantSpec:
    facts = TargetFacts(triple, "x86-64", "", dots={"i16x2": "llvm.x86.sse2.pmadd.wd"})
    return VariantSpec("baseline", (), facts)
