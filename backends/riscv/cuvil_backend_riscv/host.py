"""This machine as a target."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

from cuvil.targets.target import Target
from cuvil_backend_riscv.features import FEATURES, closure


@lru_cache(maxsize=1)
def host() -> Target | None:
    """The triple with the features that every core has by the kernel's word; None elsewhere.

    The kernel does not tell the width of vector registers: builds for wide ones are found when an
    artefact is opened, by the shim.
    """
    if platform.machine() != "riscv64" or platform.system() != "Linux":
        return None
    libc = "musl" if any(Path("/lib").glob("ld-musl-*")) else "gnu"
    present = extensions(Path("/proc/cpuinfo").read_text())
    usable = [n for n in FEATURES if closure((n,)) <= present | {"zvl128b"}]
    return Target(f"riscv64-linux-{libc}", "generic-rv64", tuple(f"+{n}" for n in usable))


def extensions(text: str) -> frozenset[str]:
    """Names in the lines `isa : rv64imafdcv_zba_zbb` that all cores have."""
    cores = []
    for line in text.splitlines():
        word, _, isa = line.partition(":")
        if word.strip() == "isa":
            letters, *names = isa.strip().removeprefix("rv64").split("_")
            cores.append({*letters, *names})
    return frozenset(set.intersection(*cores)) if cores else frozenset()
