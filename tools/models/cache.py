"""Where built models are kept: outside the repository, written once, never half."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

BUILDER_VERSION = 2
"""Raise this when a builder changes what it writes: files of older versions are then ignored."""


def cache_folder() -> Path:
    """`$CUVIL_MODELS` where set, else `~/.cache/cuvil-models`; created when missing."""
    folder = Path(os.environ.get("CUVIL_MODELS") or Path.home() / ".cache" / "cuvil-models")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached_path(stem: str) -> Path:
    """Where the built file for `stem` is, or will be."""
    return cache_folder() / f"{stem}-v{BUILDER_VERSION}.onnx"


def cached(stem: str, build: Callable[[Path], None]) -> Path:
    """The cached file for `stem`; `build(path)` writes it first when it is not there yet."""
    final = cached_path(stem)
    if final.exists():
        return final
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=f".{stem}-") as scratch:
        draft = Path(scratch) / final.name
        build(draft)
        draft.replace(final)
    return final
