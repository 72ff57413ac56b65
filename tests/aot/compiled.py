"""Folders of what the small models compile to, made once per test run."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options
from tests import small_models

dense = partial(small_models.dense, rows="n", columns=16)

_MODELS = {
    "add1": lambda: small_models.affine("add1", 1, 1),
    "mul2": lambda: small_models.affine("mul2", 2, 0),
    "twin": lambda: small_models.affine("twin", 1, 1),  # add1 under another name
    "dense": dense,
    "stages": small_models.stages,
    "wide": small_models.wide,
    "found": small_models.found,
    "steps": small_models.steps,
    "words": small_models.words,
    "pairs": small_models.pairs,
}
_ELEMENTS = {"pairs": {"items": 2, "shift": 1, "mask": 0}}


def dense_reference(x: np.ndarray) -> np.ndarray:
    """What `dense` computes."""
    return small_models.dense_result(dense(), x)


@lru_cache
def compiled(name: str) -> Artefact:
    """A small model as `.so`, `.a` and `.o` with every variant, in a folder of its own."""
    options = Options(target="x86_64", name=name, elements=_ELEMENTS.get(name, {}))
    return compile_to_folder(_MODELS[name](), _root() / name, options, emit=("so", "a", "o"))


@lru_cache
def _root() -> Path:
    folder = tempfile.mkdtemp(prefix="cuvil-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
