"""What took part in a compile, for its key; needed only where something was compiled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from cuvil.engine.cache_files import python_files, tree_digest
from cuvil.engine.cache_key import package_state
from cuvil.ops.custom.identity import identities
from cuvil.version import VERSION

__all__ = ["compiler_versions", "edited_since", "identities", "package_states"]

_LIBRARIES = ("llvmlite", "xdsl", "onnx", "onnx_ir", "numpy", "ml_dtypes")


def compiler_versions(backends: Sequence[str]) -> dict[str, str]:
    """What takes part in a compile with the backends whose packages are called so: name -> version.

    Cuvil's own packages have the digest of their sources beside it: a checkout changes without
    its version.
    """
    own = {name: f"{VERSION} {tree_digest(_folder(name))}" for name in ("cuvil", *backends)}
    return own | {name: _version(name) for name in _LIBRARIES}


def edited_since(when_ns: int, backends: Sequence[str]) -> bool:
    """Whether a source file of Cuvil or a backend is newer: then other code may run here."""
    folders = map(_folder, ("cuvil", *backends))
    return any(os.stat(p).st_mtime_ns > when_ns for f in folders for p in python_files(f))


def package_states(backends: Sequence[str]) -> list[list[str]]:
    """Paths with a quick digest of their state: while it stays, so do the versions."""
    paths = [*map(_folder, ("cuvil", *backends)), *map(_origin, _LIBRARIES)]
    return [[path, package_state(path)] for path in paths]


def _version(package: str) -> str:
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return "?"


def _origin(package: str) -> str:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(package)
    return spec.origin


def _folder(package: str) -> str:
    return os.path.dirname(_origin(package))
