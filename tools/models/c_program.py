"""Runs compiled libraries from C: builds `run_model.c` and passes values through files."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cuvil.aot.runner.program import SOURCE as CALLER
from cuvil.aot.runner.program import Folder, read_response, write_request
from cuvil.aot.write import Artefact

SOURCE = Path(__file__).with_name("run_model.c")
FLAGS = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Werror")


class CProgramError(RuntimeError):
    """The program could not be built or failed; the message is what it said."""


def c_compiler() -> list[str] | None:
    """The command of a C compiler, None without any."""
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def build(include: Path, folder: Path, source: Path = SOURCE) -> Path:
    """The program, compiled against the headers `cuvil/*.h` in `include`."""
    compiler = c_compiler()
    if compiler is None:
        raise CProgramError("there is no C compiler")
    program = folder / source.stem
    places = ["-I", str(include), "-I", str(CALLER.parent)]
    _call([*compiler, *FLAGS, *places, str(source), "-o", str(program), "-ldl"])
    return program


def run(
    program: Path, artefact: Artefact, inputs: Mapping[str, np.ndarray], folder: Path
) -> dict[str, np.ndarray]:
    """Outputs by name. Files go to `folder`. Raises CProgramError with the program's message, or
    where one of its runs gives other bytes than the first."""
    model, request = Folder(artefact.folder, artefact.manifest), folder / "request"
    first, *others = responses = [folder / name for name in ("first", "again", "created")]
    write_request(model, inputs, request)
    library = artefact.files["so"].resolve()
    _call(list(map(str, [program, library, artefact.name, request, *responses])))
    for other in others:
        if other.read_bytes() != first.read_bytes():
            raise CProgramError(f"the outputs of the run '{other.name}' differ from the first's")
    return read_response(model, first)


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CProgramError(f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr}")
