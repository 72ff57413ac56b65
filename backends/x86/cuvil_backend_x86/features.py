"""Features of x86-64 cpus: bit numbers are those of `shim/cpu_x86.c`, names are LLVM's."""

from __future__ import annotations

from collections.abc import Iterable

from cuvil.targets import features
from cuvil.targets.features import Feature

_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sse4.2", ()),
    ("avx", ("sse4.2",)),
    ("f16c", ("avx",)),
    ("fma", ("avx",)),
    ("avx2", ("avx",)),
    ("bmi2", ()),
    ("avxvnni", ("avx2",)),
    ("avx512f", ("avx2", "fma", "f16c")),
    ("avx512bw", ("avx512f",)),
    ("avx512dq", ("avx512f",)),
    ("avx512vl", ("avx512f",)),
    ("avx512cd", ("avx512f",)),
    ("avx512vnni", ("avx512f",)),
    ("avx512bf16", ("avx512bw",)),
)
FEATURES = {name: Feature(name, bit, name, implies) for bit, (name, implies) in enumerate(_ROWS)}

AVX2 = ("avx2", "fma", "f16c", "bmi2")
AVX2_VNNI = ("avxvnni", *AVX2)
AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", *AVX2)

AVX512_VNNI = ("avx512vnni", *AVX512)
AVX512_BF16 = ("avx512bf16", *AVX512_VNNI)

CPUS: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": ("sse4.2",),
    "x86-64-v3": AVX2,
    "x86-64-v4": AVX512,
    "haswell": AVX2,
    "skylake": AVX2,
    "alderlake": AVX2_VNNI,
    "skylake-avx512": AVX512,
    "icelake-server": (*AVX512, "avx512vnni"),
    "sapphirerapids": (*AVX512, "avx512vnni", "avx512bf16", "avxvnni"),
    "znver2": AVX2,
    "znver3": AVX2,
    "znver4": (*AVX512, "avx512vnni", "avx512bf16"),
    "znver5": (*AVX512, "avx512vnni", "avx512bf16", "avxvnni"),
}


def closure(names: Iterable[str]) -> frozenset[str]:
    """The features and all that they imply."""
    return features.closure(FEATURES, names)
