"""Models for other machines than this one: compiled, and run by an emulator or over ssh."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuvil.aot.check import MANIFEST
from cuvil.aot.runner.machine import Machine
from cuvil.aot.runner.program import Arrays, Folder, open_folder, run_here
from cuvil.aot.write import compile_to_folder
from cuvil.cli.models import is_artefact
from cuvil.errors import OptionError, TargetError
from cuvil.options import Options
from cuvil.targets.registry import find
from cuvil.targets.target_list import resolve

if TYPE_CHECKING:
    from cuvil.cli.console import Stages


def this_triple() -> str:
    """The triple of this machine, "" where no installed backend serves it."""
    try:
        return find("cpu")[1].triple
    except TargetError:
        return ""


def foreign_triple(model: str, options: Options) -> str:
    """The triple of the other kind of machine that a model is compiled for, or would be; "" where
    it is this one's. OptionError for a compiled model that options do not fit."""
    if not is_artefact(model):
        targets = resolve(options.target, options.cpu, options.features)
        triple = "" if targets.accelerators else targets.host[1].triple
    else:
        place = Path(model)
        known = ((place if place.is_dir() else place.parent) / MANIFEST).exists()
        triple = _checked(open_folder(place), options).triple if known else ""
    return "" if triple == this_triple() else triple


def _checked(folder: Folder, options: Options) -> Folder:
    """The folder, when the target that was asked for is its own."""
    default = Options()
    if options.target != default.target:
        asked = find(options.target)[1].triple
        if asked != folder.triple:
            raise OptionError(f"{folder.path} was compiled for {folder.triple}, not for {asked}")
    return folder


@contextmanager
def folder_for(model: str, options: Options, stages: Stages) -> Iterator[tuple[Folder, Path]]:
    """The compiled folder of a model and a scratch folder, which has the weights too.

    An ONNX file is compiled into the scratch folder. OptionError for options of a compile where
    there is nothing to compile.
    """
    with tempfile.TemporaryDirectory(prefix="cuvil-run-") as name:
        scratch = Path(name)
        if is_artefact(model):
            folder = _checked(open_folder(model), options)
            if options != Options(target=options.target):
                raise OptionError(f"{model} is compiled already: only --target may stand with it")
        else:
            made = compile_to_folder(
                model, scratch / "model", options, emit=("a",), progress=stages
            )
            folder = open_folder(made.folder)
        if folder.weights is not None:
            (scratch / folder.weights.name).symlink_to(folder.weights.resolve())
        yield folder, scratch


def check_emulator(triple: str) -> None:
    """Raises TargetError with what is missing to run programs for a machine."""
    missing = Machine(triple).lacking(shared=False)
    if missing:
        raise TargetError(f"no program for {triple} can be run here: {missing}")


def run_emulated(
    folder: Folder, feed: Arrays, scratch: Path, threads: int | None, stages: Stages
) -> dict[str, Any]:
    """The outputs by name of a run on this machine. Raises cuvil.Error subclasses."""
    stages(f"run as {folder.triple}")
    return run_here(folder, Machine(folder.triple), feed, scratch, threads)[0]
