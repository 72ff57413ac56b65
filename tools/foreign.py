"""Machines of other kinds, as `cuvil run` knows them, with a cache for the compiler that a sandbox
lets be kept: the stubs of a C library take it a while."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from cuvil.aot.runner import machine as runner
from cuvil.aot.runner.machine import Machine
from cuvil.errors import CompileError as ForeignError
from tools.models.cache import cache_folder

__all__ = ["ForeignError", "Machine", "compile_c", "machines", "zig_environment"]


def machines(triple: str, cpu: str = "") -> tuple[Machine, ...]:
    """Those of a triple. cpu: as qemu calls it; bars at its end are between alternatives:
    "rv64,v=true,vlen=128|256" are two machines."""
    head, equals, values = cpu.rpartition("=")
    return tuple(Machine(triple, f"{head}{equals}{value}") for value in values.split("|"))


def compile_c(
    machine: Machine, sources: Sequence[Path], output: Path, flags: Sequence[str | Path] = ()
) -> Path:
    """As the runner's. Raises ForeignError."""
    return runner.compile_c(machine, sources, output, flags, zig_environment())


@lru_cache(maxsize=1)
def zig_environment() -> dict[str, str]:
    """Variables that tell zig where its cache is."""
    folder = str(cache_folder() / "zig")
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
