"""The Arm backend: facts, variants and the C shim; its record is `BACKEND`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuvil.ir.attrs import Attrs
from cuvil.ir.types import TensorType
from cuvil.targets.backend import Backend, VariantSpec
from cuvil.targets.target import Target
from cuvil_backend_arm64 import armv7, cortex_m, rules
from cuvil_backend_arm64.features import CPUS, FEATURES
from cuvil_backend_arm64.host import host
from cuvil_backend_arm64.variants import LLVM_TRIPLES, MACOS
from cuvil_backend_arm64.variants import variants as hosted_variants

__version__ = "0.1.0"


def supports(op: str, types: Sequence[TensorType], attrs: Attrs) -> float | None:
    """The host CPU computes every primitive; cost 1 lets accelerators take what they do better."""
    return 1.0


def bitcode(triple: str) -> Sequence[Path]:
    """The runtime and the shim as LLVM bitcode, made when the wheel was built."""
    return sorted((Path(__file__).parent / "data").glob(f"*.{triple}.bc"))


def variants(target: Target) -> Sequence[VariantSpec]:
    """The builds for a target."""
    if target.triple in cortex_m.LLVM_TRIPLES:
        return cortex_m.variants(target)
    if target.triple in armv7.LLVM_TRIPLES:
        return armv7.variants(target)
    return hosted_variants(target)


BACKEND = Backend(
    name="arm64",
    version=__version__,
    triples=(*LLVM_TRIPLES, *armv7.LLVM_TRIPLES, *cortex_m.LLVM_TRIPLES),
    aliases={
        "aarch64": "aarch64-linux-gnu",
        "arm64": "aarch64-linux-gnu",
        "aarch64-unknown-linux-gnu": "aarch64-linux-gnu",
        "aarch64-unknown-linux-musl": "aarch64-linux-musl",
        "aarch64-unknown-linux-android": "aarch64-linux-android",
        "arm64-apple-darwin": "arm64-apple-macos",
        "aarch64-apple-darwin": "arm64-apple-macos",
        "aarch64-apple-macos": "arm64-apple-macos",
        "armv7": "armv7-linux-gnueabihf",
        "armv7l": "armv7-linux-gnueabihf",
        "armv7-unknown-linux-gnueabihf": "armv7-linux-gnueabihf",
    },
    cpus={**CPUS, **armv7.CPUS, **dict.fromkeys(cortex_m.CPUS, ())},
    features=FEATURES,
    variants=variants,
    host=host,
    supports=supports,
    rules=rules,
    bitcode=bitcode,
    detect="cuvil_arm64_features",
    freestanding=frozenset(cortex_m.LLVM_TRIPLES),
    unlinked=frozenset({MACOS}),
    support=cortex_m.SUPPORT,
    helpers=armv7.HELPERS,
    linker_emulation={
        **{t: "aarch64linux" for t in LLVM_TRIPLES if t != MACOS},
        **dict.fromkeys(armv7.LLVM_TRIPLES, "armelf_linux_eabi"),
    },
    libraries={
        "aarch64-linux-gnu": ("libc.so.6", "libpthread.so.0"),
        "aarch64-linux-musl": ("libc.so",),
        "aarch64-linux-android": ("libc.so",),
        "armv7-linux-gnueabihf": ("libc.so.6", "libpthread.so.0"),
    },
)
