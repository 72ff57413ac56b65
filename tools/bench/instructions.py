"""Instructions that compiled models execute on emulated machines, counted by a plugin of QEMU."""

from __future__ import annotations

import atexit
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cuvil.aot.runner.program import FLAGS, SOURCE, open_folder, write_request
from cuvil.aot.write import compile_to_folder
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.foreign import Machine, compile_c
from tools.models.c_program import c_compiler

HERE = Path(__file__).parent
Words = Sequence[object]
Variables = Mapping[str, str]
_NONE: Variables = MappingProxyType({})


class CountError(RuntimeError):
    """Instructions cannot be counted; the message says what is missing or what a program said."""


def lacking(machine: Machine) -> str:
    """Why instructions of a machine's programs cannot be counted here, "" where they can."""
    if missing := machine.lacking():
        return missing
    emulator = machine.emulator()
    if emulator is None:
        return f"{machine.triple} is this machine: nothing emulates it"
    said = subprocess.run([emulator, "-h"], capture_output=True, text=True, check=False).stdout
    if "-plugin" not in said:
        return f"{emulator} was built without plugins"
    return "" if c_compiler() else "there is no C compiler"


@dataclass(frozen=True)
class Count:
    """Instructions, and the last line that the program wrote."""

    instructions: int
    said: str


def executed(machine: Machine, program: Path, words: Words, variables: Variables = _NONE) -> Count:
    """What a program executes. variables: all of its environment. Raises CountError with what it
    said."""
    emulator, *rest = machine.command(program, *map(str, words))
    settings = [word for pair in variables.items() for word in ("-E", "=".join(pair))]
    with tempfile.TemporaryDirectory(prefix="cuvil-count-") as folder:
        to = Path(folder, "count")
        command = [emulator, "-plugin", f"file={_plugin()},to={to}", *settings, *rest]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
        if done.returncode or not to.exists():
            said = (done.stdout + done.stderr).strip()
            raise CountError(f"{program.name} ended with {done.returncode}: {said}")
        return Count(int(to.read_text()), done.stdout.strip().rpartition("\n")[2])


def of_one_run(
    machine: Machine, program: Path, words: Words, variables: Variables = _NONE
) -> Count:
    """What one run is of those that a program makes, as many as its last word says; it is put
    behind `words`. The first run's beginnings are left out."""
    first, second = (executed(machine, program, [*words, runs], variables) for runs in (1, 2))
    return Count(second.instructions - first.instructions, second.said)


def of_model(
    machine: Machine, model: Any, inputs: Mapping[str, np.ndarray], options: Options, folder: Path
) -> Count:
    """A run of a model, compiled into a folder, on one thread; `said` is the build that ran. Raises
    CountError, cuvil.Error."""
    made = compile_to_folder(model, folder, options, emit=("a",))
    words: list[str | Path] = [*FLAGS, "-I", include_dir(), "-I", SOURCE.parent, "-pthread"]
    words += [f"-DCUVIL_MODEL={made.name}", "-include", made.files["header"], "-static"]
    sources = [HERE / "repeat_model.c", made.files["a"]]
    program = compile_c(machine, sources, folder / "repeat_model", words)
    request = folder / "request"
    write_request(open_folder(folder), inputs, request)
    return of_one_run(machine, program, [request])


@lru_cache(maxsize=1)
def _plugin() -> Path:
    """The plugin, built once per process."""
    compiler = c_compiler()
    if compiler is None:
        raise CountError("there is no C compiler")
    scratch = tempfile.TemporaryDirectory(prefix="cuvil-plugin-")
    atexit.register(scratch.cleanup)
    library = Path(scratch.name, "instructions.so")
    words = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    command = [*compiler, *words, str(HERE / "instructions.c"), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CountError(done.stderr)
    return library
