"""Machines of other kinds: C programs for them by `ziglang`, run by qemu's user mode emulators."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tools.models.cache import cache_folder


class ForeignError(RuntimeError):
    """A program could not be built; the message is what the compiler said."""


@dataclass(frozen=True)
class Machine:
    """A kind of machine. triple: as backends call it. cpu: as qemu calls it, "" for its default;
    what an emulated cpu lacks, it refuses as the real one would."""

    triple: str
    cpu: str = ""

    @property
    def arch(self) -> str:
        """The architecture as qemu, zig and Debian call it: without a version."""
        return re.sub(r"^(arm|thumb)v\d\w*$", r"\1", self.triple.partition("-")[0])

    @property
    def system(self) -> str:
        """The triple with that architecture."""
        return f"{self.arch}-{self.triple.partition('-')[2]}"

    def emulator(self) -> str | None:
        """The program that runs its programs, None where it is not installed."""
        name = f"qemu-{self.arch}"
        return shutil.which(name) or shutil.which(f"{name}-static")

    def sysroot(self) -> Path | None:
        """Where its C library lies, for programs that load libraries; as Debian's packages
        `libc6-*-cross` have it."""
        folder = Path("/usr", self.system)
        return folder if (folder / "lib").is_dir() else None

    def lacking(self, shared: bool = True) -> str:
        """Why its programs cannot be run here, "" where they can. shared: those that load
        libraries."""
        if self.emulator() is None:
            return f"qemu-{self.arch} (Debian: qemu-user) is not installed"
        if importlib.util.find_spec("ziglang") is None:
            return "there is no C compiler for it (pip install ziglang)"
        if shared and self.sysroot() is None:
            return f"there is no {self.system} below /usr (Debian: libc6-*-cross)"
        return ""

    def command(self, *words: str | Path) -> list[str]:
        """What runs a program here. Raises ForeignError without an emulator."""
        emulator, root = self.emulator(), self.sysroot()
        if emulator is None:
            raise ForeignError(self.lacking())
        options = ["-L", str(root)] if root else []
        options += ["-cpu", self.cpu] if self.cpu else []
        return [emulator, *options, *map(str, words)]


def compile_c(
    machine: Machine, sources: Sequence[Path], output: Path, flags: Sequence[str | Path] = ()
) -> Path:
    """Builds a program from C files and objects: `output`. `-static` among the flags makes one
    that needs no C library there. Raises ForeignError with what the compiler said."""
    command = [*zig("cc"), "-target", machine.system, "-O1", *map(str, flags)]
    command += [*map(str, sources), "-o", str(output)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=zig_environment()
    )
    if done.returncode:
        raise ForeignError(done.stderr or done.stdout)
    return output


def zig(*words: str) -> list[str]:
    """The command of zig's tool of that name."""
    return [sys.executable, "-m", "ziglang", *words]


@lru_cache(maxsize=1)
def zig_environment() -> dict[str, str]:
    """With the cache where a sandbox lets it be kept: the stubs of a C library take a while."""
    folder = str(cache_folder() / "zig")
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
