"""Features of RISC-V cpus: bit numbers are those of `shim/cpu_riscv.c`, names are LLVM's."""

from __future__ import annotations

from collections.abc import Iterable

from cuvil.targets import features
from cuvil.targets.features import Feature

_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("m", ()),
    ("a", ()),
    ("f", ()),
    ("d", ("f",)),
    ("c", ()),
    ("zba", ()),
    ("zbb", ()),
    ("zbs", ()),
    ("zvl128b", ()),
    ("v", ("d", "zvl128b")),
    ("zvl256b", ("v",)),
    ("zvl512b", ("zvl256b",)),
    ("zfhmin", ("f",)),
    ("zvfhmin", ("v",)),
    ("zvfh", ("zvfhmin", "zfhmin")),
)
FEATURES = {name: Feature(name, bit, name, implies) for bit, (name, implies) in enumerate(_ROWS)}

RV64GC = ("m", "a", "f", "d", "c")
_BITS = ("zba", "zbb", "zbs")

CPUS: dict[str, tuple[str, ...]] = {
    "generic-rv64": RV64GC,
    "sifive-p550": (*RV64GC, "zba", "zbb"),
    "sifive-p670": (*RV64GC, *_BITS, "v"),
    "sifive-u74": RV64GC,
    "sifive-x280": (*RV64GC, "zba", "zbb", "zvl512b", "zvfh"),
    "spacemit-x60": (*RV64GC, *_BITS, "zvl256b", "zvfh"),
    "thead-c906": RV64GC,  # its vector instructions are those of a draft, 0.7
}


def closure(names: Iterable[str]) -> frozenset[str]:
    """The features and all that they imply."""
    return features.closure(FEATURES, names)
