"""This machine as a target."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

from cuvil.targets.target import Target
from cuvil_backend_arm64.features import FEATURES, closure

_KERNEL_NAMES = {"fp16": "asimdhp", "dotprod": "asimddp", "fp16fml": "asimdfhm"}


@lru_cache(maxsize=1)
def host() -> Target | None:
    """The triple with the features that cpu and operating system offer; None elsewhere."""
    if platform.machine() not in ("aarch64", "arm64") or platform.system() != "Linux":
        return None
    libc = "musl" if any(Path("/lib").glob("ld-musl-*")) else "gnu"
    flags = _cpu_flags(Path("/proc/cpuinfo").read_text())
    present = [n for n in FEATURES if _KERNEL_NAMES.get(n, n) in flags]
    usable = [n for n in present if closure((n,)) <= set(present)]
    return Target(f"aarch64-linux-{libc}", "generic", tuple(f"+{n}" for n in usable))


def _cpu_flags(text: str) -> frozenset[str]:
    """What every core that the kernel's text lists has: little cores may lack what big ones do."""
    cores = [
        frozenset(line.partition(":")[2].split())
        for line in text.splitlines()
        if line.startswith("Features")
    ]
    return frozenset.intersection(*cores) if cores else frozenset()
