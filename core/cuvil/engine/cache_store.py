"""The folder of compiled models: entries that appear whole or not at all, locks, and a size bound.

    <root>/entries/<name>/meta.json   the full key, and size and checksum of every other file
    <root>/records/<kind>/<name>.json small facts: digests of files, what a request led to
    <root>/locks/<name>               held while an entry is made; the system frees a dead holder's
    <root>/tmp/                       entries in the making, renamed into place

Files here are code that runs in the caller's process: the root belongs to the caller and to nobody
else, or it is not used.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_BYTES = 16 << 30
LEFTOVER_S = 3600  # a folder in tmp/ this old has no maker any more
_LOCK_POLL_S = 0.05


@dataclass(frozen=True)
class Entry:
    """A stored compile. used: when it was last stored or loaded, in seconds since the epoch."""

    name: str
    folder: Path
    bytes: int
    used: float
    model: str
    target: str


def default_root() -> Path:
    """CUVIL_CACHE_DIR, else `cuvil` in XDG_CACHE_HOME, else in ~/.cache.

    Raises OSError when the user has no home folder.
    """
    given = os.environ.get("CUVIL_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base, "cuvil")
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise OSError(errno.ENOENT, "no home folder; set CUVIL_CACHE_DIR")
    return Path(home, ".cache", "cuvil")


def size_bound() -> int:
    """Bytes that entries may take: CUVIL_CACHE_BYTES, else 16 GiB."""
    text = os.environ.get("CUVIL_CACHE_BYTES", "")
    return int(text) if text.isdigit() else DEFAULT_BYTES


class Store:
    """One cache folder. Any number of processes may use it at the same time."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Makes the folder where needed. OSError when it is not private to this user."""
        self.root = Path(os.path.abspath(root))
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(self.root)

    def entry_folder(self, name: str) -> Path:
        """Where an entry lies, or would."""
        return self.root / "entries" / name

    def touch(self, name: str) -> None:
        """Notes that an entry was used."""
        with suppress(OSError):
            os.utime(self.entry_folder(name))

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A new folder for an entry's files; what is not committed goes away."""
        parent = self._folder("tmp")
        folder = Path(tempfile.mkdtemp(dir=parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def commit(self, folder: Path, name: str) -> Path:
        """Renames a staged folder into place; an entry that another process made meanwhile stays.

        Raises OSError.
        """
        target = self._folder("entries") / name
        try:
            os.rename(folder, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        return target

    def remove(self, name: str) -> None:
        """Removes an entry, at once for those who look. Who has it mapped keeps it."""
        grave = Path(tempfile.mkdtemp(dir=self._folder("tmp")))
        with suppress(FileNotFoundError):
            os.rename(self.entry_folder(name), grave / "entry")
        shutil.rmtree(grave, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """All entries, the most recently used first."""
        parent = self.root / "entries"
        names = os.listdir(parent) if parent.is_dir() else []
        found = [e for e in map(self._describe, names) if e is not None]
        return sorted(found, key=lambda e: e.used, reverse=True)

    def _describe(self, name: str) -> Entry | None:
        folder = self.entry_folder(name)
        try:
            size = sum(f.stat().st_size for f in folder.iterdir())
            used = folder.stat().st_mtime
        except OSError:
            return None
        key = (read_json(folder / "meta.json") or {}).get("key", {})
        return Entry(name, folder, size, used, key.get("name", "?"), key.get("target", "?"))

    def prune(self, bound: int, keep: str = "") -> list[Entry]:
        """Removes the least recently used entries until the rest fits; never `keep`."""
        removed, total = [], 0
        for entry in self.entries():
            total += entry.bytes
            if total > bound and entry.name != keep:
                self.remove(entry.name)
                removed.append(entry)
                total -= entry.bytes
        self._remove_leftovers()
        return removed

    def _remove_leftovers(self) -> None:
        for folder in self._folder("tmp").iterdir():
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > LEFTOVER_S:
                    shutil.rmtree(folder, ignore_errors=True)

    def clear(self) -> None:
        """Removes all entries and records."""
        for entry in self.entries():
            self.remove(entry.name)
        for part in ("entries", "records", "locks"):
            shutil.rmtree(self.root / part, ignore_errors=True)

    def read_record(self, kind: str, name: str) -> dict[str, Any] | None:
        """A record, or None where there is none or it is damaged."""
        return read_json(self.root / "records" / kind / f"{name}.json")

    def write_record(self, kind: str, name: str, record: Mapping[str, Any]) -> None:
        """Writes a record by rename. Raises OSError."""
        folder = self._folder("records") / kind
        folder.mkdir(mode=0o700, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(path, folder / f"{name}.json")

    @contextmanager
    def lock(
        self, name: str, timeout_s: float = 900.0, waiting: Callable[[], None] = lambda: None
    ) -> Iterator[bool]:
        """Holds the lock of that name; False when somebody else had it for all of `timeout_s`.

        A holder that dies, however it dies, frees it. waiting: called once when it is taken.
        """
        handle = os.open(self._folder("locks") / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _take(handle, timeout_s, waiting)
        finally:
            os.close(handle)

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file, or None where there is none."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _take(handle: int, timeout_s: float, waiting: Callable[[], None]) -> bool:
    end, told = time.monotonic() + timeout_s, False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            if not told:
                waiting()
            told = True
            time.sleep(_LOCK_POLL_S)
        else:
            return True


def _require_private(root: Path) -> None:
    """OSError unless nobody but this user could have put files into `root`."""
    link, info = root.lstat(), root.stat()
    if info.st_uid != os.geteuid() or link.st_uid not in (0, info.st_uid):
        raise OSError(errno.EPERM, f"{root} belongs to another user")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(errno.EPERM, f"{root} is writable by others: chmod 700 {root}, or remove it")
    if info.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        root.chmod(0o700)
