"""Opens external data: files that an untrusted model names, mapped read-only, never copied.

The rule. A location is a relative path without "..". It is looked up in the model's folder as the
caller gave it, then in the folder of the model's real file. Whatever symbolic links lie on the
way, the file it leads to must lie inside one of these two folders, so a hub cache whose
`snapshots/r/model.onnx` and `snapshots/r/model.onnx_data` both link into `blobs/` loads, and a
link to /etc does not. The file must be a regular one with one hard link.

The check is made on what was opened: the path without links is walked from the folder by handle,
refusing links, so swapping a file between check and open gains nothing.
"""

from __future__ import annotations

import bisect
import errno
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cuvil.errors import ModelError

__all__ = ["ExternalFiles", "Location", "ReadFiles", "Reader", "SourceFile", "map_file"]

_NUMBER = re.compile(r"[0-9]{1,19}")

Reader = Callable[[str, int, int], bytes | bytearray | memoryview]
"""A caller's source of external data: (location, offset, length) -> exactly these bytes."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was opened, as a cache index knows it; times in nanoseconds."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Location:
    """Where a tensor says its bytes are; `length` None means what its shape needs."""

    path: str
    offset: int
    length: int | None

    @staticmethod
    def parse(entries: Iterable[tuple[str, str]], where: str) -> Location:
        """From the key-value pairs of `TensorProto.external_data`; ModelError when not sound."""
        known: dict[str, str] = {}
        for key, value in entries:
            if key in known:
                raise ModelError(f"{where}: external data gives {key!r} twice")
            known[key] = value
        path = known.get("location", "")
        if not path or "\0" in path:
            raise ModelError(f"{where}: external data without a valid location")
        if os.path.isabs(path) or ".." in path.split("/"):
            raise ModelError(
                f"{where}: external data {path!r} is not a path inside the model's folder"
            )
        offset = _number(known, "offset", where)
        return Location(path, offset or 0, _number(known, "length", where))


def _number(known: dict[str, str], key: str, where: str) -> int | None:
    text = known.get(key)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise ModelError(f"{where}: external data {key} {text!r} is not a non-negative number")
    return int(text)


def map_file(handle: int, path: str) -> tuple[memoryview, SourceFile]:
    """The whole regular file behind `handle`, mapped read-only, and what it is.

    The map lives as long as a view of it does. Shortening the file meanwhile is an error of
    whoever does it: reading past its new end stops the process. OSError when it is not a regular
    file or cannot be mapped.
    """
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    source = SourceFile(
        path, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
    )
    if not info.st_size:
        return memoryview(b""), source
    return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ)), source


class _Mapped:
    """One mapped file and the regions that tensors have taken from it."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self._regions: list[tuple[int, int]] = []

    def take(self, start: int, stop: int) -> bool:
        """Notes a region; False when it overlaps another without being the same one."""
        region = (start, stop)
        at = bisect.bisect_left(self._regions, region)
        if start == stop or self._regions[at : at + 1] == [region]:
            return True
        if at and self._regions[at - 1][1] > start:
            return False
        if at < len(self._regions) and self._regions[at][0] < stop:
            return False
        self._regions.insert(at, region)
        return True


class ExternalFiles:
    """The files beside one model. `folders`: where to look, in order; none: refuse all."""

    def __init__(self, folders: Sequence[str], *, allow_hard_links: bool = False) -> None:
        self._folders = tuple(folders)
        self._allow_hard_links = allow_hard_links
        self._by_path: dict[str, _Mapped] = {}
        self._by_inode: dict[tuple[int, int], _Mapped] = {}
        self.sources: list[SourceFile] = []

    def region(self, location: Location, expected: int, where: str) -> memoryview:
        """The `expected` bytes that tensor `where` (named so in errors) has at `location`.

        ModelError for a file that the rule above refuses, for a region outside it, of another
        length, or one that partly overlaps another tensor's (the same region twice is fine).
        """
        length = expected if location.length is None else location.length
        if length != expected:
            raise ModelError(f"{where}: external data of {length} bytes, its shape has {expected}")
        mapped = self._by_path.get(location.path)
        if mapped is None:
            mapped = self._by_path[location.path] = self._open(location.path, where)
        start, stop = location.offset, location.offset + length
        if stop > len(mapped.data):
            raise ModelError(
                f"{where}: external data at bytes {start} to {stop} of {location.path!r}, "
                f"which has {len(mapped.data)}"
            )
        if not mapped.take(start, stop):
            raise ModelError(
                f"{where}: external data at bytes {start} to {stop} of {location.path!r} "
                "overlaps another tensor's"
            )
        return mapped.data[start:stop]

    def _open(self, path: str, where: str) -> _Mapped:
        if not self._folders:
            raise ModelError(
                f"{where}: external data {path!r}, but a model given without a file has no "
                "folder: pass one (folder=...)"
            )
        try:
            handle = _open_inside(path, self._folders)
            try:
                return self._map(handle, path)
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ModelError(f"{where}: external data {path!r}: {reason}") from None

    def _map(self, handle: int, path: str) -> _Mapped:
        info = os.fstat(handle)
        if stat.S_ISREG(info.st_mode) and info.st_nlink > 1 and not self._allow_hard_links:
            raise OSError(
                errno.EMLINK,
                f"has {info.st_nlink} hard links, so it may belong elsewhere; "
                "allow_hard_links=True accepts it",
            )
        identity = (info.st_dev, info.st_ino)
        if identity not in self._by_inode:
            data, source = map_file(handle, path)
            self._by_inode[identity] = _Mapped(data)
            self.sources.append(source)
        return self._by_inode[identity]


class ReadFiles(ExternalFiles):
    """External data that a caller's function hands out; no file is opened."""

    def __init__(self, read: Reader) -> None:
        super().__init__(())
        self._read = read

    def region(self, location: Location, expected: int, where: str) -> memoryview:
        """As `ExternalFiles.region`; ModelError when the function gives another length."""
        length = expected if location.length is None else location.length
        if length != expected:
            raise ModelError(f"{where}: external data of {length} bytes, its shape has {expected}")
        data = memoryview(self._read(location.path, location.offset, length)).cast("B")
        if len(data) != length:
            raise ModelError(f"{where}: the reader gave {len(data)} bytes, not {length}")
        return data.toreadonly()


def _open_inside(path: str, folders: Sequence[str]) -> int:
    """A handle on the file that `path` leads to from one of `folders`, inside one of them."""
    roots = [os.path.realpath(folder) for folder in folders]
    for folder in folders:
        try:
            target = os.path.realpath(os.path.join(folder, path), strict=True)
        except FileNotFoundError:
            continue
        for root in roots:
            if os.path.commonpath([root, target]) == root:
                return _open_beneath(root, os.path.relpath(target, root).split("/"))
        raise OSError(errno.EPERM, "leads outside the model's folder")
    raise OSError(errno.ENOENT, f"no such file in {' or '.join(dict.fromkeys(folders))}")


def _open_beneath(root: str, parts: Sequence[str]) -> int:
    """Opens `root`/`parts` read-only, by handle from `root` down, following no link."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        # A FIFO must not block the open; the caller looks at what the handle is.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            deeper = os.open(part, flags, dir_fd=handle)
        finally:
            os.close(handle)
        handle = deeper
    return handle
