"""Machines of other kinds: C programs for them, run by qemu's user mode emulators."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuvil.errors import CompileError, TargetError

_OTHER_C_LIBRARIES = re.compile(r"-linux-(?:gnu|android)")


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

    @property
    def static(self) -> str:
        """The system for whose C library programs are linked that need none when they run."""
        return _OTHER_C_LIBRARIES.sub("-linux-musl", self.system)

    @property
    def is_here(self) -> bool:
        """Whether its programs run on this machine as they are."""
        return not self.cpu and self.arch == platform.machine() and "-linux-" in self.triple

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
        if "-linux-" not in self.triple:
            return f"{self.triple} has no operating system whose programs could be run here"
        if self.is_here:
            return ""
        if self.emulator() is None:
            return f"qemu-{self.arch} (Debian: qemu-user) is not installed"
        if shared and self.sysroot() is None:
            return f"there is no {self.system} below /usr (Debian: libc6-*-cross)"
        return ""

    def command(self, *words: str | Path) -> list[str]:
        """What runs a program here. Raises TargetError without an emulator."""
        if self.is_here:
            return list(map(str, words))
        emulator, root = self.emulator(), self.sysroot()
        if emulator is None:
            raise TargetError(self.lacking())
        options = ["-L", str(root)] if root else []
        options += ["-cpu", self.cpu] if self.cpu else []
        return [emulator, *options, *map(str, words)]


def compilers(machine: Machine, static: bool = False) -> list[list[str]]:
    """Commands of C compilers for a machine, the one that starts quickest first. static: for
    programs that need no C library there."""
    own = ("cc", "gcc", "clang") if machine.is_here else ()
    paths = [shutil.which(name) for name in (*own, f"{machine.system}-gcc")]
    found = [[path] for path in paths if path]
    if importlib.util.find_spec("ziglang"):
        system = machine.static if static else machine.system
        found.append([sys.executable, "-m", "ziglang", "cc", "-target", system])
    return found


def compile_c(
    machine: Machine,
    sources: Sequence[Path],
    output: Path,
    flags: Sequence[str | Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Path:
    """Builds a program from C files and objects: `output`. `-static` among the flags makes one
    that needs no C library there. Raises CompileError with what the compilers said, or where there
    is none."""
    said = []
    for compiler in compilers(machine, "-static" in flags):
        command = [*compiler, "-O1", *map(str, flags), *map(str, sources), "-o", str(output)]
        env = {**os.environ, **(environment or {})}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        if done.returncode == 0:
            return output
        said.append((done.stderr or done.stdout).strip())
    raise CompileError(
        "; ".join(said)
        or f"a program for {machine.triple} needs a C compiler: pip install 'cuvil[link]'"
    )
