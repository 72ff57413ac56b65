"""Whether the files of an artefact are those that a compile wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cuvil.engine.cache_files import digest_file
from cuvil.errors import ArtefactError

MANIFEST = "manifest.json"


def check_artefact(path: str | os.PathLike[str]) -> str:
    """Compares the files of an artefact with its manifest; says in words what was found.

    path: the folder, or a library or object in it. All files that the manifest lists must be
    there, and the weights file must be to the last byte what was written: loading looks at its
    size and build only. Raises ArtefactError naming the file that is not as it should be.
    """
    place = Path(path)
    folder = place if place.is_dir() else place.parent
    if not place.exists():
        raise ArtefactError(f"{place}: No such file or directory")
    manifest = _manifest(folder / MANIFEST)
    if manifest is None:
        return f"no {MANIFEST} lies beside it: its files cannot be checked"
    for name in manifest["files"]:
        if not (folder / name).exists():
            raise ArtefactError(f"{folder / name} is missing, the manifest lists it")
    digest = manifest.get("weights_sha256")
    if digest is None:
        return "all files are there; weights are in the library, or there are none"
    weights = folder / str(manifest.get("weights_file"))
    if digest_file(weights) != digest:
        raise ArtefactError(f"{weights} is not what was written: compile the model again")
    return f"all files are there, and {weights.name} is what was written"


def _manifest(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        names = data["files"]
        if not all(isinstance(n, str) and ".." not in Path(n).parts for n in names):
            raise ValueError("a name of a file is none")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactError(f"{path} is not a manifest: {error}") from error
    return dict(data)
