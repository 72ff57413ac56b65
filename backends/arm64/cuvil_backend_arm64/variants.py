"""The builds of an artefact, and what the code generator may know of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec
from cuvil.targets.features import amended
from cuvil.targets.target import Target
from cuvil_backend_arm64.features import CPUS, FEATURES, NARROW, closure

MACOS = "arm64-apple-macos"
LLVM_TRIPLES = {
    "aarch64-linux-gnu": "aarch64-unknown-linux-gnu",
    "aarch64-linux-musl": "aarch64-unknown-linux-musl",
    "aarch64-linux-android": "aarch64-unknown-linux-android21",
    MACOS: "arm64-apple-macosx11.0.0",
}
_LEAST = {MACOS: "apple-m1"}  # triples of which every cpu has what this one has

_NAMES = {
    (): "neon",
    ("dotprod",): "dotprod",
    ("fp16fml",): "fp16fml",
    ("bf16", "i8mm"): "i8mm_bf16",
}
_BF16 = {"bf16x2": "llvm.aarch64.neon.bfdot.v4f32.v8bf16"}
_BYTES = {"u8s8x4": "llvm.aarch64.neon.usdot.v4i32.v16i8"}
_MATRICES = {
    "bf16x2": "llvm.aarch64.neon.bfmmla",
    "u8s8x4": "llvm.aarch64.neon.usmmla.v4i32.v16i8",
}
_HALVES = ("llvm.aarch64.neon.fmlal.v4f32.v8f16", "llvm.aarch64.neon.fmlal2.v4f32.v8f16")
_SIGNED = {"s8s8x4": "llvm.aarch64.neon.sdot.v4i32.v16i8"}

# What makes builds differ, best first: features, instructions for sums of products, the factors
# that these are for. Vectors of SVE are left alone: no cpu multiplies faster by them than by pairs
# of short vectors.
_BUILDS: tuple[tuple[tuple[str, ...], Mapping[str, str], frozenset[str]], ...] = (
    (("bf16", "i8mm"), {**_BF16, **_BYTES}, frozenset({"bf16", "u8"})),
    (("fp16fml",), MappingProxyType({}), frozenset({"f16"})),
    (("dotprod",), _SIGNED, frozenset({"u8"})),
    ((), MappingProxyType({}), frozenset()),
)


def variants(target: Target) -> Sequence[VariantSpec]:
    """Without a cpu: builds for what multiplies bfloat16 and bytes, and the baseline. With one:
    those that it runs, tuned for it; the last for everything else."""
    triple, least = LLVM_TRIPLES[target.triple], _LEAST.get(target.triple, "generic")
    if not target.cpu and not target.features:
        return [_build(triple, least, CPUS[least], *row) for row in _BUILDS]
    runs = [name for name in CPUS if least == "generic" or name.startswith("apple")]
    if target.cpu and target.cpu not in runs:
        raise TargetError(f"{target.cpu} does not run {target.triple}")
    if unknown := [word for word in target.features if word[1:] in NARROW]:
        raise TargetError(f"{target.triple} knows no feature '{unknown[0][1:]}'")
    cpu = target.cpu or least
    have = amended(FEATURES, CPUS[cpu], target.features)
    known = tuple(name for name in FEATURES if name in have and name not in _NOT_USED)
    rows = [row for row in _BUILDS if have >= set(row[0])]
    return [_build(triple, cpu, known, *row) for row in rows]


def _build(
    triple: str,
    cpu: str,
    have: tuple[str, ...],
    needs: tuple[str, ...],
    dots: Mapping[str, str],
    products: frozenset[str],
) -> VariantSpec:
    requires = tuple(sorted({*have, *closure(needs)}))
    return VariantSpec(_NAMES[needs], requires, _facts(triple, cpu, requires, dots), products)


_NOT_USED = {"sve", "sve2"}
_LARGE = (64 * 1024, 4, 512 * 1024)
_CACHES = {  # of level 1: bytes and ways; of level 2: bytes that a core may count on
    "cortex-a76": _LARGE,
    "cortex-a76ae": _LARGE,
    "cortex-a77": _LARGE,
    "cortex-a78": _LARGE,
    "cortex-a78ae": _LARGE,
    "cortex-x1": (64 * 1024, 4, 1024 * 1024),
    "cortex-x2": (64 * 1024, 4, 1024 * 1024),
    "neoverse-n1": (64 * 1024, 4, 1024 * 1024),
    "neoverse-n2": (64 * 1024, 4, 1024 * 1024),
    "neoverse-v1": (64 * 1024, 4, 1024 * 1024),
    "neoverse-v2": (64 * 1024, 4, 2 * 1024 * 1024),
    "apple-m1": (128 * 1024, 8, 4 * 1024 * 1024),
    "apple-m2": (128 * 1024, 8, 4 * 1024 * 1024),
    "apple-m3": (128 * 1024, 8, 4 * 1024 * 1024),
}


def _facts(
    triple: str, cpu: str, features: tuple[str, ...], dots: Mapping[str, str]
) -> TargetFacts:
    """features: all of them; LLVM must leave out others that it knows the cpu to have."""
    wide = [name for name in FEATURES if name not in NARROW]
    words = [("+" if name in features else "-") + FEATURES[name].llvm for name in wide]
    l1_bytes, l1_ways, l2_bytes = _CACHES.get(cpu, (32 * 1024, 4, 512 * 1024))
    return TargetFacts(
        triple, cpu, ",".join(words), vector_bits=128, vector_registers=32, fma=True,
        rounding=True, half=True, l1_bytes=l1_bytes, l1_ways=l1_ways, l2_bytes=l2_bytes,
        lane_products=True, dots=dots, byte_table="llvm.aarch64.neon.tbl4.v16i8",
        half_products=_HALVES if "fp16fml" in features else (),
        matrices={group: name for group, name in _MATRICES.items() if group in dots},
    )  # fmt: skip
