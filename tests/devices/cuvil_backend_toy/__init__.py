"""A backend whose device takes products of f32 matrices and nothing else; see `toy.c`."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.types import TensorType
from cuvil.targets.backend import Backend, DeviceKernel, MemorySpace
from cuvil.targets.target import Target
from cuvil_runtime import include_dir
from cuvil_runtime.devices import open_device

MAGIC = 0x31594F54
OPENED: list[Toy] = []
SOURCE = Path(__file__).parent / "toy.c"


def supports(op: str, types: Sequence[TensorType], attrs: Attrs) -> float | None:
    """Contractions of two f32 tensors, at half of what the host asks."""
    return 0.5 if op == "contract" and all(t.dtype.name == "f32" for t in types) else None


def emit(op: str, types: Sequence[TensorType], attrs: Attrs, target: Target) -> DeviceKernel:
    """The contraction's letters, extents and operands as the shim reads them."""
    inputs, out = attrs.spec.split("->")
    specs = [*inputs.split(","), out]
    extents: dict[str, Dim] = {}
    for spec, kind in zip(specs, types, strict=False):
        extents.update(zip(spec, kind.dims, strict=True))
    letters = [*out, *(c for c in extents if c not in out)]
    dims = tuple(dict.fromkeys(d for d in extents.values() if not isinstance(d, int)))
    words = [MAGIC, len(letters)]
    for letter in letters:
        extent = extents[letter]
        words.append(extent if isinstance(extent, int) else -1 - dims.index(extent))
    for spec in specs:
        words += [len(spec), *(letters.index(c) for c in spec)]
    return DeviceKernel("toy", np.array(words, "<i4").tobytes(), "contract", dims)


BACKEND = Backend(
    name="toy",
    version="0.1.0",
    triples=("toy-unknown-none",),
    aliases={"toy": "toy-unknown-none"},
    cpus={"wooden": (), "plastic": ()},
    supports=supports,
    emit=emit,
    space=MemorySpace("toy", align=256),
)


class Counts(ctypes.Structure):
    """`toy_counts` of the shim."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "opened", "allocated", "queues", "loaded", "uploads", "downloads", "copies",
            "launches", "waits", "fail_launches",
        )
    ]  # fmt: skip


class Toy:
    """The shim, compiled into a folder. device: as `cuvil_runtime.load` takes it."""

    def __init__(self, folder: Path) -> None:
        library = folder / "libtoy.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
            + ["-I", include_dir(), str(SOURCE), "-o", str(library)],
            check=True,
        )
        self.device: Any = open_device(str(library), "toy_device")
        OPENED.append(self)
        self.counts = Counts.in_dll(ctypes.CDLL(str(library)), "toy_counts")

    def took(self) -> dict[str, int]:
        """What was done since the last call."""
        names = ("uploads", "downloads", "copies", "launches")
        done = {name: getattr(self.counts, name) for name in names}
        for name in names:
            setattr(self.counts, name, 0)
        return done


def device() -> Any:
    """What the entry point of group `cuvil.devices` leads to."""
    return OPENED[-1].device
