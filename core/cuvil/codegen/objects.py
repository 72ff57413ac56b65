"""Object files of whichever format the code generator gave: ELF or Mach-O, told by their bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cuvil.codegen import elf, elf_archive, elf_merge, macho_archive, macho_merge
from cuvil.codegen.elf import Data, Note
from cuvil.codegen.elf_archive import Member
from cuvil.codegen.elf_file import SYMTAB, read_object
from cuvil.codegen.macho_file import MAGIC

__all__ = [
    "Data",
    "Member",
    "Note",
    "defined_globals",
    "functions",
    "join",
    "undefined_symbols",
    "visible_globals",
    "write_archive",
]

_FUNCTION, _EXECUTABLE = 2, 4  # symbol type, section flag


def _is_macho(data: bytes | memoryview) -> bool:
    return bytes(data[: len(MAGIC)]) == MAGIC


def join(
    path: str | os.PathLike[str],
    objects: Sequence[bytes],
    keep: Callable[[str], bool],
    rename: Mapping[str, str],
    data: Sequence[Data] = (),
    notes: Sequence[Note] = (),
) -> None:
    """Writes objects as one, with read-only data; see `elf_merge.merge_objects`. notes: for what
    loads ELF objects."""
    if _is_macho(objects[0]):
        macho_merge.merge_objects(path, objects, keep, rename, data)
        return
    elf_merge.merge_objects(path, objects, keep, rename)
    elf.extend_object(path, Path(path).read_bytes(), data=data, notes=notes)


def write_archive(path: str | os.PathLike[str], members: Sequence[Member]) -> None:
    """Writes a static archive, as linkers of the members' format read them."""
    known = macho_archive if _is_macho(members[0].view()) else elf_archive
    known.write_archive(path, members)


def undefined_symbols(data: bytes | memoryview) -> list[str]:
    """The names, as of C, that an object or shared library imports, sorted."""
    return (macho_merge if _is_macho(data) else elf).undefined_symbols(data)


def defined_globals(data: bytes | memoryview) -> list[str]:
    """The global names, as of C, that an object or library defines, sorted."""
    return macho_merge.defined_globals(data) if _is_macho(data) else elf.defined_globals(data)


def visible_globals(data: bytes | memoryview) -> list[str]:
    """Those of `defined_globals` that users of a library linked from it see."""
    if _is_macho(data):
        return macho_merge.defined_globals(data, exported=True)
    return elf.defined_globals(data, exported=True)


def functions(data: bytes) -> tuple[int, list[tuple[str, int]]]:
    """Bytes of code in an object, and its functions with their sizes."""
    if _is_macho(data):
        return macho_merge.functions(data)
    source = read_object(data)
    code = sum(s.size for s in source.sections if s.flags & _EXECUTABLE)
    table = source.find(SYMTAB)
    symbols = source.symbols(table) if table else []
    return code, [(s.name, s.size) for s in symbols if s.type == _FUNCTION]
