"""From what the command line names to an engine that runs."""

from __future__ import annotations

import os

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import Progress, compile_cached, compile_uncached
from cuvil.engine.engine import Engine
from cuvil.engine.loading import load
from cuvil.errors import ModelError, OptionError
from cuvil.options import Options

_ELF = b"\x7fELF"
_ARCHIVE = b"!<arch>\n"


def is_artefact(path: str) -> bool:
    """Whether a path is something that was compiled: a folder, an ELF file or an archive of them.

    ModelError when there is nothing there.
    """
    if os.path.isdir(path):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(8).startswith((_ELF, _ARCHIVE))
    except OSError as error:
        raise ModelError(f"{path}: cannot be opened: {error.strerror}") from None


def engine_for(
    path: str,
    options: Options,
    threads: int | None = None,
    cache: bool = True,
    progress: Progress = lambda stage: None,
) -> Engine:
    """The engine of an artefact, or of an ONNX file that is compiled for this machine.

    OptionError for options of a compile where there is nothing to compile.
    """
    if is_artefact(path):
        if options != Options():
            raise OptionError(f"{path} is compiled already: options of a compile cannot change it")
        return load(path, threads=threads)
    build = compile_cached if cache else compile_uncached
    return build(path, Wanted(options), threads, progress)
