"""Runs compiled libraries from C: builds `run_model.c` and passes arrays through raw files."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes  # noqa: F401 - makes numpy know "bfloat16"
import numpy as np

from cuvil.aot.write import Artefact

SOURCE = Path(__file__).with_name("run_model.c")


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


def build(include: Path, folder: Path) -> Path:
    """The program, compiled against the headers `cuvil/*.h` in `include`."""
    compiler = c_compiler()
    if compiler is None:
        raise CProgramError("there is no C compiler")
    program = folder / "run_model"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(include)]
    _call([*compiler, *flags, str(SOURCE), "-o", str(program), "-ldl"])
    return program


def run(
    program: Path, artefact: Artefact, inputs: Mapping[str, np.ndarray], folder: Path
) -> dict[str, np.ndarray]:
    """Outputs by name. Files go to `folder`. Raises CProgramError with the program's message."""
    arguments = []
    for place, port in enumerate(artefact.manifest["inputs"]):
        array, path = inputs[port["name"]], folder / f"input{place}.bin"
        array.tofile(path)
        arguments.append(f"{path}:{','.join(map(str, array.shape))}")
    command = [program, artefact.files["so"].resolve(), artefact.name, folder, *arguments]
    lines = _call(list(map(str, command))).splitlines()
    return dict(_output(line, folder / f"{place}.bin") for place, line in enumerate(lines))


def _output(line: str, path: Path) -> tuple[str, np.ndarray]:
    """The array that a line "name dtype extent,extent,..." of the program describes."""
    name, dtype, extents = line.rsplit(" ", 2)
    shape = [int(extent) for extent in extents.split(",") if extent]
    return name, np.fromfile(path, np.dtype(dtype)).reshape(shape)


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CProgramError(f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr}")
    return done.stdout
