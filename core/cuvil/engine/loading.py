"""`cuvil.load`: what was compiled before, as an engine. Imports nothing of the compiler, and little
else: a process that only runs models waits for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from cuvil.engine.engine import Engine
from cuvil.errors import ArtefactError
from cuvil_runtime import load as load_artefact


def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    variant: str | None = None,
    weights: Any = None,
    weights_reader: Callable[[int, int], Any] | None = None,
    name: str | None = None,
) -> Engine:
    """Loads what `cuvil compile` or `cuvil.Compiler` wrote: a `.so`, a `.o`, or their folder.

    Load only files that you trust: they are code. threads: as for `compile`. variant: overrides
    the choice by cpu. weights: path or buffer of the weights, by default the file beside the
    library; weights_reader(offset, count) hands them out. name: which of several models in a file.

    Raises ArtefactError, TargetError or OptionError.
    """
    chosen = weights if weights_reader is None else weights_reader
    return Engine(
        load_artefact(
            artefact_path(path), weights=chosen, threads=threads, variant=variant, name=name
        )
    )


def artefact_path(path: str | os.PathLike[str]) -> str:
    """The library or object that a path or a folder stands for. Raises ArtefactError."""
    place = os.fspath(path)
    if not os.path.isdir(place):
        return place
    manifest = _manifest(os.path.join(place, "manifest.json"))
    others = manifest.get("custom_libraries", ())  # lie beside the model's own
    listed = [str(f) for f in manifest.get("files", ()) if f not in others]
    for ending in (".so", ".o"):
        found = [f for f in listed if f.endswith(ending)]
        found = found or sorted(f for f in os.listdir(place) if f.endswith(ending))
        if len(found) == 1:
            return os.path.join(place, found[0])
        if found:
            names = ", ".join(map(os.path.basename, found))
            raise ArtefactError(f"{place} holds several models: {names}; give one's path")
    raise ArtefactError(f"{place}: no .so or .o of a compiled model lies here")


def _manifest(path: str) -> dict[str, Any]:
    """The manifest, empty where there is none."""
    try:
        with open(path, "rb") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
