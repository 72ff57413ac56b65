"""Static archives (`.a`), written with a symbol table, the same bytes for the same members.

The GNU variant of the common format: a symbol index in member `/` (or `/SYM64/` where offsets need
64 bits), names over 15 characters in member `//`, no dates and no owners.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cuvil.codegen.elf import defined_globals
from cuvil.errors import ArtefactError

__all__ = ["MAGIC", "Member", "read_archive", "write_archive"]

MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_SHORT_NAME = 15
_MAX_BYTES = 9_999_999_999  # ten decimal digits
_COPY_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """An object file of an archive: its bytes, or the file that holds them."""

    name: str
    content: bytes | Path

    @property
    def size(self) -> int:
        """Bytes of the object."""
        if isinstance(self.content, Path):
            return self.content.stat().st_size
        return len(self.content)

    def view(self) -> memoryview:
        """The object's bytes, mapped when they are in a file."""
        if isinstance(self.content, bytes):
            return memoryview(self.content)
        with open(self.content, "rb") as file:
            if not self.size:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def write_archive(path: str | os.PathLike[str], members: Sequence[Member]) -> None:
    """Writes `members`, in their order, streaming those that are files.

    ValueError for a name with a slash or line end, or a member of 10 GB or more; ArtefactError for
    one that is not an ELF object. No file is left on failure.
    """
    for member in members:
        if not member.name or "/" in member.name or "\n" in member.name:
            raise ValueError(f"{member.name!r} cannot name a member of an archive")
        if member.size > _MAX_BYTES:
            raise ValueError(f"{member.name} has {member.size} bytes, the limit is {_MAX_BYTES}")
    titles, long_names = _titles(members)
    symbols = [defined_globals(member.view()) for member in members]
    index_name, index = _index(members, symbols, long_names)
    try:
        with open(path, "wb") as out:
            out.write(MAGIC)
            _write(out, index_name, index)
            if long_names:
                _write(out, "//", long_names)
            for title, member in zip(titles, members, strict=True):
                _write(out, title, member.view())
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def read_archive(data: bytes) -> list[bytes]:
    """The objects of an archive of this kind, or of one with names before contents (`#1/LENGTH`).
    ArtefactError where it is damaged."""
    if not data.startswith(MAGIC):
        raise ArtefactError("not an archive")
    found, at = [], len(MAGIC)
    while at < len(data):
        title, size = data[at : at + 16].rstrip(), data[at + 48 : at + 58].strip()
        start = at + _HEADER_BYTES
        if not size.isdigit() or start + int(size) > len(data):
            raise ArtefactError("damaged archive: a member outside the file")
        content = data[start : start + int(size)]
        if title.startswith(b"#1/") and title[3:].isdigit():
            title, content = content[: int(title[3:])].rstrip(b"\0"), content[int(title[3:]) :]
        if title not in (b"/", b"//", b"/SYM64/", b"__.SYMDEF"):
            found.append(content)
        at += _space(int(size))
    return found


def _titles(members: Sequence[Member]) -> tuple[list[str], bytes]:
    """The name field of each member, and the table of the long names."""
    titles, table = [], b""
    for member in members:
        name = member.name.encode()
        if len(name) > _SHORT_NAME:
            titles.append(f"/{len(table)}")
            table += name + b"/\n"
        else:
            titles.append(member.name + "/")
    return titles, table


def _index(
    members: Sequence[Member], symbols: list[list[str]], long_names: bytes
) -> tuple[str, bytes]:
    """The symbol index: a count, the offset of each symbol's member, the symbols' names."""
    names = b"".join(s.encode("utf-8", "surrogateescape") + b"\0" for ss in symbols for s in ss)
    count = sum(map(len, symbols))

    def offsets(width: int) -> list[int]:
        position = len(MAGIC) + _space((count + 1) * width + len(names))
        position += _space(len(long_names)) if long_names else 0
        found = []
        for member, defined in zip(members, symbols, strict=True):
            found += [position] * len(defined)
            position += _space(member.size)
        return found

    title, width = "/", 4
    if max(offsets(width), default=0) >= 1 << 32:
        title, width = "/SYM64/", 8
    numbers = (count, *offsets(width))
    return title, b"".join(n.to_bytes(width, "big") for n in numbers) + names


def _space(size: int) -> int:
    return _HEADER_BYTES + size + size % 2


def _write(out: BinaryIO, title: str, content: bytes | memoryview) -> None:
    out.write(f"{title:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode())
    for start in range(0, len(content), _COPY_BYTES):
        out.write(content[start : start + _COPY_BYTES])
    out.write(b"\n" * (len(content) % 2))
