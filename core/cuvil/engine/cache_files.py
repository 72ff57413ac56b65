"""What files contain, without reading them again: digests indexed by what `stat` says.

A digest is trusted while device, inode, size and both times of the file are those it was taken
with, unless the file had changed within two seconds before: a second change in that time could
leave the times as they are on a coarse clock.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cuvil.engine.cache_store import Store

SETTLED_NS = 2_000_000_000
_BLOCK_BYTES = 8 << 20


def digest_bytes(*parts: bytes | bytearray | memoryview) -> str:
    """The SHA-256 of the parts, in hex: cpus have instructions for it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def digest_file(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes, in hex. OSError when it cannot be read."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        # Blocks so large that a thread seldom waits for the interpreter beside others.
        block = memoryview(bytearray(min(_BLOCK_BYTES, os.fstat(file.fileno()).st_size + 1)))
        while count := file.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()


def identity(path: str | os.PathLike[str]) -> list[int]:
    """Device, inode, size, mtime and ctime in nanoseconds. OSError when there is no such file."""
    info = os.stat(path)
    return [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]


def indexed_digest(store: Store, path: str | os.PathLike[str]) -> str:
    """The digest of a file's bytes, from the index where that can be trusted.

    OSError when the file cannot be read.
    """
    full = os.path.realpath(path)
    name = digest_bytes(os.fsencode(full))
    now, seen = time.time_ns(), identity(full)
    row: dict[str, Any] = store.read_record("files", name) or {}
    settled = row.get("indexed_ns", 0) - max(seen[3], seen[4]) > SETTLED_NS
    if row.get("path") == full and row.get("identity") == seen and settled:
        return str(row["digest"])
    digest = digest_file(full)
    if identity(full) == seen:
        record = {"path": full, "identity": seen, "digest": digest, "indexed_ns": now}
        with suppress(OSError):
            store.write_record("files", name, record)
    return digest


def tree_state(folder: str | os.PathLike[str]) -> str:
    """A digest of names, sizes and times of the Python files below a folder: cheap, local."""
    rows = []
    for path in python_files(folder):
        info = os.stat(path)
        rows.append(f"{path} {info.st_size} {info.st_mtime_ns}")
    return digest_bytes("\n".join(rows).encode())


def tree_digest(folder: str | os.PathLike[str]) -> str:
    """A digest of the contents of the Python files below a folder: the same on any machine."""
    root = os.fspath(folder)
    rows = [f"{os.path.relpath(p, root)} {digest_file(p)}" for p in python_files(root)]
    return digest_bytes("\n".join(rows).encode())


def python_files(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Paths of the Python files below a folder, in order."""
    for place, folders, files in os.walk(Path(folder)):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        yield from (os.path.join(place, f) for f in sorted(files) if f.endswith(".py"))
