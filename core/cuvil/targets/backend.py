"""The contract between the compiler and a backend: one frozen record per backend package.

A backend package registers its record under the entry-point group `cuvil.backends`. Every hook is
plain data or a function of plain data; xDSL and llvmlite stay out of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from cuvil.codegen.facts import TargetFacts
from cuvil.ir.attrs import Attrs
from cuvil.ir.types import TensorType
from cuvil.targets.target import Target

API_VERSION = 1


@dataclass(frozen=True)
class Feature:
    """One feature of a cpu. bit: in the mask that the shim's detect function returns; llvm: its
    name in LLVM's feature string; implies: features that come with it."""

    name: str
    bit: int
    llvm: str
    implies: tuple[str, ...] = ()


@dataclass(frozen=True)
class VariantSpec:
    """One build of every kernel. requires: features that must be present to run it."""

    name: str
    requires: tuple[str, ...]
    facts: TargetFacts


@dataclass(frozen=True)
class MemorySpace:
    """A memory in which buffers may lie. host: whether the host can address it."""

    name: str
    host: bool = True
    align: int = 64


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel blob of a device: opaque bytes that its runtime shim launches by symbol."""

    kind: str
    blob: bytes
    symbol: str


Supports = Callable[[str, Sequence[TensorType], Attrs], float | None]
EmitDevice = Callable[[str, Sequence[TensorType], Attrs], DeviceKernel]


@dataclass(frozen=True)
class Backend:
    """What a backend package offers.

    triples: those it serves, normalised; aliases: short names to triples. cpus: name -> features.
    variants(target): the builds that an artefact for it holds, best first; the last runs on any
    cpu of the triple (or on the one asked for). host(): this machine as a target, or None when
    the backend does not serve it. supports: cost of an op given as primitive name, operand types
    and attributes, or None; the host CPU takes what nobody else does. emit: a device kernel for a
    supported op (None: the shared CPU toolkit generates code). spaces: where its buffers lie.
    rules: package with rewrite rules of its own. bitcode: the runtime and the C shim as LLVM
    bitcode for a triple. detect: the shim's function that returns feature bits. linker_emulation:
    triple -> what linkers call its format. libraries: triple -> sonames of the system's libraries
    that hold the C functions which an artefact imports.
    """

    name: str
    version: str
    triples: tuple[str, ...]
    aliases: Mapping[str, str]
    cpus: Mapping[str, tuple[str, ...]]
    features: Mapping[str, Feature]
    variants: Callable[[Target], Sequence[VariantSpec]]
    host: Callable[[], Target | None]
    supports: Supports
    emit: EmitDevice | None = None
    spaces: tuple[MemorySpace, ...] = (MemorySpace("host"),)
    rules: ModuleType | None = None
    bitcode: Callable[[str], Sequence[Path]] = field(default=lambda triple: ())
    detect: str = ""
    linker_emulation: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    api_version: int = API_VERSION

    def feature_bits(self, names: Sequence[str]) -> int:
        """The mask of the named features and all that they imply."""
        mask, waiting = 0, list(names)
        while waiting:
            feature = self.features[waiting.pop()]
            if not mask >> feature.bit & 1:
                mask |= 1 << feature.bit
                waiting += feature.implies
        return mask

    def feature_names(self) -> list[str]:
        """Names by bit, "" for bits without one."""
        by_bit = {f.bit: f.name for f in self.features.values()}
        return [by_bit.get(i, "") for i in range(max(by_bit, default=-1) + 1)]
