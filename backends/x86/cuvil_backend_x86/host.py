"""This machine as a target."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

from cuvil.targets.target import Target
from cuvil_backend_x86.features import FEATURES, closure

_KERNEL_NAMES = {"sse4.2": "sse4_2", "avxvnni": "avx_vnni", "avx512vnni": "avx512_vnni",
                 "avx512bf16": "avx512_bf16"}  # fmt: skip


@lru_cache(maxsize=1)
def host() -> Target | None:
    """The triple with the features that cpu and operating system offer; None elsewhere.

    The kernel lists a feature only when CPUID has it and XGETBV says that its registers are saved.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    libc = "musl" if platform.libc_ver()[0] == "" and _is_musl() else "gnu"
    flags = _cpu_flags()
    present = [n for n in FEATURES if _KERNEL_NAMES.get(n, n) in flags]
    usable = [n for n in present if closure((n,)) <= set(present)]
    return Target(f"x86_64-linux-{libc}", "x86-64", tuple(f"+{n}" for n in usable))


def _cpu_flags() -> frozenset[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def _is_musl() -> bool:
    return any(Path("/lib").glob("ld-musl-*"))
