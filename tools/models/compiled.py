"""A zoo model as a compiled library, loaded, with what the compile took."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import cuvil
from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options
from cuvil.pipeline import identifier
from tools.models.case import ModelCase

SYMBOL_PREFIX = "zoo_"


@dataclass(frozen=True)
class Made:
    """A library. seconds: from the model's file to there."""

    artefact: Artefact
    seconds: float

    @property
    def library(self) -> Path:
        return self.artefact.files["so"]

    @property
    def code_bytes(self) -> int:
        """Machine code of all variants and of the runtime inside."""
        return sum(self.artefact.manifest["code_bytes"].values())

    @property
    def weights_bytes(self) -> int:
        return int(self.artefact.manifest["weights_bytes"])


@dataclass(frozen=True)
class Compiled(Made):
    """A library and an engine over it."""

    engine: cuvil.Engine

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The model's outputs by name, on one thread."""
        names = [output.name for output in self.engine.get_outputs()]
        return dict(zip(names, self.engine.run(None, inputs), strict=True))


def compile_case(
    case: ModelCase,
    folder: Path,
    *,
    target: str = "cpu",
    dims: Mapping[str, int] | None = None,
    variant: str | None = None,
) -> Compiled:
    """Compiles into `folder` and loads from there.

    target, dims: as in cuvil.Options. variant: overrides the choice by cpu. Raises cuvil.Error.
    """
    made = compile_file(case, folder, Options(target=target, dims=dict(dims or {})))
    engine = cuvil.load(made.library, threads=1, variant=variant)
    return Compiled(made.artefact, made.seconds, engine)


def compile_file(case: ModelCase, folder: Path, options: Options) -> Made:
    """Compiles into `folder`, under the name that the zoo's libraries have. Raises cuvil.Error."""
    start = time.perf_counter()
    name = identifier(SYMBOL_PREFIX + case.path.stem)
    artefact = compile_to_folder(case.path, folder, replace(options, name=name))
    return Made(artefact, time.perf_counter() - start)


class Library:
    """Compiles models into a folder, one at a time: asked for the same file again, it has it."""

    def __init__(self, folder: Path, target: str = "cpu", variant: str | None = None) -> None:
        self._folder, self._target, self._variant = folder, target, variant
        self._last: tuple[Path, Compiled] | None = None

    def of(self, case: ModelCase) -> Compiled:
        """The compiled model, until the next one is asked for. Raises cuvil.Error."""
        if self._last is None or self._last[0] != case.path:
            self.clear()
            # The system's loader knows libraries by their path, so no path is used twice.
            self._folder.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            made = compile_case(case, folder, target=self._target, variant=self._variant)
            self._last = (case.path, made)
        return self._last[1]

    def clear(self) -> None:
        """Unloads and deletes what was compiled last."""
        if self._last:
            self._last[1].engine.close()
        self._last = None
        shutil.rmtree(self._folder, ignore_errors=True)
