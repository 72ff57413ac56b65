"""The contract between the compiler and a backend: one frozen record per backend package.

A backend package registers its record under the entry-point group `cuvil.backends`. Every hook is
plain data or a function of plain data; only rows of `kernels` see the code generator's toolkit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from types import ModuleType

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.kernel_table import KernelRow
from cuvil.errors import OptionError
from cuvil.ir.attrs import Attrs
from cuvil.ir.types import TensorType
from cuvil.plan.devices import DeviceKernel, Supports
from cuvil.plan.steps import HOST
from cuvil.targets.features import Feature, closure
from cuvil.targets.target import Target

__all__ = [
    "API_VERSION",
    "Backend",
    "DeviceKernel",
    "EmitFor",
    "Feature",
    "MemorySpace",
    "Supports",
    "VariantSpec",
]

API_VERSION = 1


@dataclass(frozen=True)
class VariantSpec:
    """One build of every kernel. requires: features that must be present to run it. products: the
    dtypes of factors for which it is better than the next variant; empty: it always is."""

    name: str
    requires: tuple[str, ...]
    facts: TargetFacts
    products: frozenset[str] = frozenset()


def variants_of(backend: Backend, target: Target, name: str = "") -> list[VariantSpec]:
    """The builds for a target, best first; of that name alone, whatever the target's cpu, where one
    is given. Raises OptionError for a name that there is not."""
    if not name:
        return list(backend.variants(target))
    every = backend.variants(replace(target, cpu="", features=()))
    found = [v for v in every if v.name == name]
    if not found:
        raise OptionError(f"no variant '{name}'; there are {', '.join(v.name for v in every)}")
    return found


def runnable(
    backend: Backend, target: Target, variants: Sequence[VariantSpec]
) -> list[VariantSpec]:
    """Those variants of a target that this machine can run: none where it is of another kind."""
    host = backend.host()
    if host is None or host.triple != target.triple:
        return []
    have = backend.feature_bits([word[1:] for word in host.features if word[0] == "+"])
    return [v for v in variants if not backend.feature_bits(v.requires) & ~have]


@dataclass(frozen=True)
class MemorySpace:
    """Where the buffers of a backend's kernels lie. name: of the space and, for an accelerator, of
    the `cuvil_device_api` that reaches it. align: of buffers in its arena, in bytes."""

    name: str = HOST
    align: int = 64


EmitFor = Callable[[str, Sequence[TensorType], Attrs, Target], DeviceKernel]


@dataclass(frozen=True)
class Backend:
    """What a backend package offers: code for a family of CPUs, or kernels for an accelerator.

    All: name, version: of the package. triples: those it serves, normalised. aliases: short names
    to triples. cpus: name -> features. features: by name. supports: the cost of an op given as
    primitive name, operand types and attributes, or None for an op it does not compute; 1 is what
    a CPU takes. None for the whole hook: all that core has a lowering for. rules: a package with
    rewrite rules of its own.

    CPUs: variants(target): the builds that an artefact for it holds, best first; the last runs on
    any cpu of the triple (or on the one asked for). host(): this machine as a target, or None when
    the backend does not serve it. kernels: fast kernels, tried before core's own. bitcode: the
    runtime and the C shim as LLVM bitcode for a triple. detect: the shim's function that returns
    feature bits. linker_emulation: triple -> what linkers call its format. libraries: triple ->
    sonames of the system's libraries that hold the C functions which an artefact imports.
    freestanding: triples without an operating system (`codegen.embedded`). unlinked: triples of
    which there are archives and objects, and no shared libraries. support: triple ->
    names, as `fnmatch` takes them, of functions that every compiler of the target links from a
    library of its own: arithmetic that the cpu lacks. helpers: triple -> functions of the shim that
    do such arithmetic in libraries, which are linked without a compiler of the target's.

    Accelerators: emit: the kernel for one supported op. space: its memory, apart from the host's.
    """

    name: str
    version: str
    triples: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    cpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: Mapping[str, Feature] = field(default_factory=dict)
    supports: Supports | None = None
    rules: ModuleType | None = None
    variants: Callable[[Target], Sequence[VariantSpec]] = field(default=lambda target: ())
    host: Callable[[], Target | None] = field(default=lambda: None)
    kernels: tuple[KernelRow, ...] = ()
    bitcode: Callable[[str], Sequence[Path]] = field(default=lambda triple: ())
    detect: str = ""
    linker_emulation: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    freestanding: frozenset[str] = frozenset()
    unlinked: frozenset[str] = frozenset()
    support: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    helpers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    emit: EmitFor | None = None
    space: MemorySpace = MemorySpace()
    api_version: int = API_VERSION

    @property
    def is_accelerator(self) -> bool:
        """Whether it computes on a device beside the host."""
        return self.emit is not None

    @property
    def package(self) -> str:
        """The name of its Python package."""
        return (self.emit or self.variants).__module__.partition(".")[0]

    def feature_bits(self, names: Sequence[str]) -> int:
        """The mask of the named features and all that they imply."""
        bits = [1 << self.features[name].bit for name in closure(self.features, names)]
        return reduce(or_, bits, 0)

    def feature_names(self) -> list[str]:
        """Names by bit, "" for bits without one."""
        by_bit = {f.bit: f.name for f in self.features.values()}
        return [by_bit.get(i, "") for i in range(max(by_bit, default=-1) + 1)]
