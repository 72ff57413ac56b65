"""C programs of this folder, linked with compiled models, for machines of other kinds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuvil.aot.runner.program import FLAGS, SOURCE
from cuvil.aot.write import Artefact
from cuvil_runtime import include_dir
from tools.foreign import Machine, compile_c


def linked(machine: Machine, source: str, models: Sequence[Artefact], folder: Path) -> Path:
    """A program of a C file here and archives of models; the first is `CUVIL_MODEL` to it, with its
    header included."""
    first = models[0]
    words: list[str | Path] = [*FLAGS, "-Werror", "-static", "-pthread"]
    words += ["-I", include_dir(), "-I", SOURCE.parent]
    words += [f"-DCUVIL_MODEL={first.name}", "-include", first.files["header"]]
    words += [word for model in models for word in ("-I", model.folder)]
    files = [Path(__file__).with_name(source), *(model.files["a"] for model in models)]
    return compile_c(machine, files, folder / Path(source).stem, words)
