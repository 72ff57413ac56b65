"""Static archives as Apple's linker reads them: names before contents, and a table of the symbols
that members define. The same bytes for the same members.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from cuvil.codegen.elf_archive import MAGIC, Member
from cuvil.codegen.macho_merge import PREFIX, defined_globals

_INDEX, _HEADER_BYTES, _WORD, _COPY_BYTES = "__.SYMDEF", 60, 8, 8 << 20


def write_archive(path: str | os.PathLike[str], members: Sequence[Member]) -> None:
    """Writes `members`, in their order, streaming those that are files. ArtefactError for one that
    is not a Mach-O object. No file is left on failure."""
    defined = [[PREFIX + name for name in defined_globals(m.view())] for m in members]
    strings = b"".join(name.encode() + b"\0" for names in defined for name in names)
    strings += bytes(-len(strings) % _WORD)
    count = sum(map(len, defined))
    at = len(MAGIC) + _space(_INDEX, 8 + 8 * count + len(strings))
    rows, name_at = [], 0
    for member, names in zip(members, defined, strict=True):
        for name in names:
            rows.append(struct.pack("<II", name_at, at))
            name_at += len(name.encode()) + 1
        at += _space(member.name, member.size)
    index = struct.pack("<I", 8 * count) + b"".join(rows) + struct.pack("<I", len(strings))
    try:
        with open(path, "wb") as out:
            out.write(MAGIC)
            _write(out, _INDEX, index + strings)
            for member in members:
                _write(out, member.name, member.view())
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _title(name: str) -> bytes:
    """The name, and zeros that bring the contents to a whole word."""
    title = name.encode() + b"\0"
    return title + bytes(-(_HEADER_BYTES + len(title)) % _WORD)


def _space(name: str, size: int) -> int:
    return _HEADER_BYTES + len(_title(name)) + size + -size % _WORD


def _write(out: BinaryIO, name: str, content: bytes | memoryview) -> None:
    title, pad = _title(name), -len(content) % _WORD
    size = len(title) + len(content) + pad
    out.write(f"{f'#1/{len(title)}':<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode())
    out.write(title)
    for start in range(0, len(content), _COPY_BYTES):
        out.write(content[start : start + _COPY_BYTES])
    out.write(b"\n" * pad)
