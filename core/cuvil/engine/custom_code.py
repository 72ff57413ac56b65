"""Finding the C functions of custom operators when compiled code is loaded in this process."""

from __future__ import annotations

import ctypes
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cuvil.engine.cache_files import digest_file
from cuvil.errors import CompileError

_LOADED: dict[str, str] = {}


def addresses(file: Path) -> dict[str, int]:
    """Symbol -> address, from rows of operator, symbol, library beside an object.

    CompileError names operator, symbol and library. Libraries stay loaded until the process ends.
    """
    rows = json.loads(file.read_bytes())
    return {row["symbol"]: _address(file.parent, row) for row in rows}


def _address(folder: Path, row: Mapping[str, str]) -> int:
    path = folder / row["library"]  # of the folder's own where it is not absolute
    try:
        library = ctypes.CDLL(_fresh(path))
    except OSError as error:
        raise CompileError(
            f"{row['operator']}: library {path}, which is to hold function {row['symbol']}, cannot "
            f"be loaded: {error}"
        ) from None
    try:
        function = getattr(library, row["symbol"])
    except AttributeError:
        words = (row["operator"], row["symbol"], row["source"], row["prototype"])
        raise CompileError(
            "{0}: {2} has no function {1}; it must export\n  {3}".format(*words)
        ) from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _fresh(path: Path) -> str:
    """The path, or a copy of a file that has changed since it was loaded under this path: the
    system would give the old one again."""
    digest = digest_file(path)
    if _LOADED.setdefault(str(path), digest) == digest:
        return str(path)
    copy = Path(tempfile.mkdtemp(prefix="cuvil-custom-"), path.name)
    shutil.copyfile(path, copy)
    return str(copy)
