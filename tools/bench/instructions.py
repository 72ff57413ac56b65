"""Instructions that compiled models execute on emulated machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cuvil.aot.runner.program import FLAGS, SOURCE, open_folder, write_request
from cuvil.aot.write import compile_to_folder
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.foreign import Machine, compile_c
from tools.plugins import observe

DRIVER = Path(__file__).with_name("repeat_model.c")
Words = Sequence[object]
Variables = Mapping[str, str]
_NONE: Variables = MappingProxyType({})


@dataclass(frozen=True)
class Count:
    """Instructions, and the last line that the program wrote."""

    instructions: int
    said: str


def executed(machine: Machine, program: Path, words: Words, variables: Variables = _NONE) -> Count:
    """What a program executes. variables: all of its environment. Raises PluginError with what it
    said."""
    seen = observe("instructions", machine, program, words, variables)
    return Count(int(seen.told), seen.said.strip().rpartition("\n")[2])


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
    PluginError, cuvil.Error."""
    made = compile_to_folder(model, folder, options, emit=("a",))
    words: list[str | Path] = [*FLAGS, "-I", include_dir(), "-I", SOURCE.parent, "-pthread"]
    words += [f"-DCUVIL_MODEL={made.name}", "-include", made.files["header"], "-static"]
    program = compile_c(machine, [DRIVER, made.files["a"]], folder / "repeat_model", words)
    request = folder / "request"
    write_request(open_folder(folder), inputs, request)
    return of_one_run(machine, program, [request])
