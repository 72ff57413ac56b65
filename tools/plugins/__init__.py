"""Plugins of QEMU, a C file each: what they see while an emulated program runs.

They are built here by a C compiler; none of QEMU's files is needed.
"""

from __future__ import annotations

import atexit
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from tools.foreign import Machine
from tools.models.c_program import c_compiler

__all__ = ["PluginError", "Seen", "lacking", "observe"]

_NONE: Mapping[str, str] = MappingProxyType({})


class PluginError(RuntimeError):
    """A plugin or a program did not work; the message is what it said."""


@dataclass(frozen=True)
class Seen:
    """What a plugin told, and what the program wrote."""

    told: str
    said: str


def lacking(machine: Machine) -> str:
    """Why nothing can be seen of a machine's programs here, "" where it can."""
    if missing := machine.lacking():
        return missing
    emulator = machine.emulator()
    if emulator is None or machine.is_here:
        return f"{machine.triple} is this machine: nothing emulates it"
    said = subprocess.run([emulator, "-h"], capture_output=True, text=True, check=False).stdout
    if "-plugin" not in said:
        return f"{emulator} was built without plugins"
    return "" if c_compiler() else "there is no C compiler"


def observe(
    plugin: str,
    machine: Machine,
    program: Path,
    words: Sequence[object] = (),
    variables: Mapping[str, str] = _NONE,
) -> Seen:
    """Runs a program under a plugin, a name of a C file here. variables: all of the program's
    environment. Raises PluginError where either fails."""
    emulator, *rest = machine.command(program, *map(str, words))
    settings = [word for pair in variables.items() for word in ("-E", "=".join(pair))]
    with tempfile.TemporaryDirectory(prefix="cuvil-seen-") as folder:
        to = Path(folder, "seen")
        command = [emulator, "-plugin", f"file={_built(plugin)},to={to}", *settings, *rest]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
        if done.returncode or not to.exists():
            said = (done.stdout + done.stderr).strip()
            raise PluginError(f"{program.name} ended with {done.returncode}: {said}")
        return Seen(to.read_text(), done.stdout)


@lru_cache
def _built(plugin: str) -> Path:
    """The plugin as a library, built once per process."""
    compiler = c_compiler()
    if compiler is None:
        raise PluginError("there is no C compiler")
    scratch = tempfile.TemporaryDirectory(prefix="cuvil-plugin-")
    atexit.register(scratch.cleanup)
    source, library = Path(__file__).with_name(f"{plugin}.c"), Path(scratch.name, f"{plugin}.so")
    words = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(
        [*compiler, *words, str(source), "-o", str(library)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise PluginError(done.stderr)
    return library
