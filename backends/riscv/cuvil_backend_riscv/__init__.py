"""The RISC-V backend: facts, variants and the C shim; its record is `BACKEND`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuvil.ir.attrs import Attrs
from cuvil.ir.types import TensorType
from cuvil.targets.backend import Backend, VariantSpec
from cuvil.targets.target import Target
from cuvil_backend_riscv import bare
from cuvil_backend_riscv.features import CPUS, FEATURES
from cuvil_backend_riscv.host import host
from cuvil_backend_riscv.variants import LLVM_TRIPLES
from cuvil_backend_riscv.variants import variants as hosted_variants

__version__ = "0.1.0"


def supports(op: str, types: Sequence[TensorType], attrs: Attrs) -> float | None:
    """The host CPU computes every primitive; cost 1 lets accelerators take what they do better."""
    return 1.0


def bitcode(triple: str) -> Sequence[Path]:
    """The runtime and the shim as LLVM bitcode, made when the wheel was built."""
    return sorted((Path(__file__).parent / "data").glob(f"*.{triple}.bc"))


def variants(target: Target) -> Sequence[VariantSpec]:
    """The builds for a target."""
    return bare.variants(target) if target.triple == bare.RV32 else hosted_variants(target)


BACKEND = Backend(
    name="riscv",
    version=__version__,
    triples=(*LLVM_TRIPLES, bare.RV32),
    aliases={
        "riscv32": bare.RV32,
        "riscv64": "riscv64-linux-gnu",
        "rv64": "riscv64-linux-gnu",
        "riscv64-unknown-linux-gnu": "riscv64-linux-gnu",
        "riscv64-unknown-linux-musl": "riscv64-linux-musl",
    },
    cpus={**CPUS, **bare.CPUS},
    features=FEATURES,
    variants=variants,
    host=host,
    supports=supports,
    bitcode=bitcode,
    detect="cuvil_riscv_features",
    freestanding=frozenset({bare.RV32}),
    support=bare.SUPPORT,
    linker_emulation=dict.fromkeys(LLVM_TRIPLES, "elf64lriscv"),
    libraries={
        "riscv64-linux-gnu": ("libc.so.6", "libpthread.so.0"),
        "riscv64-linux-musl": ("libc.so",),
    },
)
