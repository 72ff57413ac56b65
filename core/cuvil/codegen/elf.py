"""Puts weights and notes into relocatable objects, and tells what an object holds.

Half a gigabyte of weights goes to disk as a stream, with the memory of one chunk; no assembler or
linker takes part. The machine's numbers are copied from an object that the code generator made,
so no architecture is named here.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cuvil.codegen.elf_file import (
    ALLOC,
    DYNSYM,
    GLOBAL,
    HIDDEN,
    LOCAL,
    NOTE,
    PROGBITS,
    RELOCATABLE,
    STRTAB,
    SYMTAB,
    TYPE_OBJECT,
    UNDEFINED,
    Machine,
    Object,
    Section,
    Symbol,
    read_object,
    write_object,
)
from cuvil.errors import ArtefactError

__all__ = [
    "Data",
    "Machine",
    "Note",
    "defined_globals",
    "extend_object",
    "machine_of",
    "read_notes",
    "section_sizes",
    "undefined_symbols",
    "write_weights_object",
]

Bytes = bytes | memoryview
ALIGN = 64  # CUVIL_ARENA_ALIGN of cuvil/abi.h
_NOTE_HEADER = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class Data:
    """Read-only data to add: `size` bytes in `chunks`, in section `.rodata.<symbol>`.

    A hidden symbol is visible to the objects it is linked with, not to users of the library.
    """

    symbol: str
    chunks: Iterable[Bytes]
    size: int
    align: int = ALIGN
    hidden: bool = True

    def __post_init__(self) -> None:
        if self.size < 0 or self.align < 1 or self.align & (self.align - 1):
            raise ValueError(f"{self.symbol}: size {self.size}, alignment {self.align}")


@dataclass(frozen=True, slots=True)
class Note:
    """An entry of section `.note.cuvil`, which loaders find without knowing a symbol."""

    kind: int
    description: bytes


def machine_of(data: Bytes) -> Machine:
    """The machine an ELF file is for; ArtefactError when it is not ELF, little-endian."""
    return read_object(data).machine


def write_weights_object(
    path: str | os.PathLike[str],
    symbol: str,
    chunks: Iterable[Bytes],
    total: int,
    machine: Machine,
    *,
    align: int = ALIGN,
    hidden: bool = True,
) -> None:
    """Writes an object of one read-only section of `total` bytes that `symbol` names.

    ValueError, and no file, when `chunks` do not add up to `total`.
    """
    source = _empty_object(machine)
    _add_data(source, Data(symbol, chunks, total, align, hidden))
    write_object(path, source)


def extend_object(
    path: str | os.PathLike[str],
    source: Bytes,
    *,
    data: Sequence[Data] = (),
    notes: Sequence[Note] = (),
) -> None:
    """Writes the relocatable object `source` with more sections to `path`.

    Symbols of `data` that `source` imports are defined by it; others are added. ArtefactError when
    `source` is not a relocatable object; ValueError when it defines one of the symbols already or
    chunks do not add up.
    """
    extended = read_object(source)
    if extended.type != RELOCATABLE or extended.find(SYMTAB) is None:
        raise ArtefactError("not a relocatable object with symbols")
    for item in data:
        _add_data(extended, item)
    if notes:
        extended.sections.append(_note_section(notes))
    write_object(path, extended)


def undefined_symbols(data: Bytes) -> list[str]:
    """The names an object or shared library imports, sorted."""
    return sorted({s.name for s in _symbols(data) if s.section == UNDEFINED and s.name})


def defined_globals(data: Bytes, *, exported: bool = False) -> list[str]:
    """The global and weak names an object or library defines, sorted.

    `exported` leaves out those that are hidden from users of a library linked from it.
    """
    return sorted(
        {
            s.name
            for s in _symbols(data)
            if s.section != UNDEFINED
            and s.binding != LOCAL
            and not (exported and s.other & 3 in (1, HIDDEN))
        }
    )


def section_sizes(data: Bytes) -> dict[str, int]:
    """Bytes in memory or file per section name; sections of the same name are summed."""
    sizes: dict[str, int] = {}
    for section in read_object(data).sections[1:]:
        sizes[section.name] = sizes.get(section.name, 0) + section.size
    return sizes


def read_notes(data: Bytes) -> list[Note]:
    """Cuvil's notes in an object or library, in order."""
    notes = []
    for section in read_object(data).sections:
        if section.type == NOTE:
            notes += _parse_notes(section.data())
    return notes


def _parse_notes(data: bytes) -> list[Note]:
    notes, pos = [], 0
    while pos + _NOTE_HEADER.size <= len(data):
        name_size, size, kind = _NOTE_HEADER.unpack_from(data, pos)
        name = pos + _NOTE_HEADER.size
        start = name + -(-name_size // 4) * 4
        if start + size > len(data):
            raise ArtefactError("damaged ELF file: a note outside its section")
        if data[name : name + name_size] == b"cuvil\0":
            notes.append(Note(kind, data[start : start + size]))
        pos = start + -(-size // 4) * 4
    return notes


def _note_section(notes: Sequence[Note]) -> Section:
    section = Section(".note.cuvil", NOTE, ALLOC, align=4)
    section.replace(
        b"".join(
            _NOTE_HEADER.pack(6, len(note.description), note.kind)
            + b"cuvil\0\0\0"
            + note.description
            + bytes(-len(note.description) % 4)
            for note in notes
        )
    )
    return section


def _symbols(data: Bytes) -> list[Symbol]:
    source = read_object(data)
    table = source.find(SYMTAB if source.type == RELOCATABLE else DYNSYM)
    return source.symbols(table) if table else []


def _empty_object(machine: Machine) -> Object:
    """An object of no content that declares its stack not executable, or linkers complain."""
    symbols = Section(".symtab", SYMTAB, link=2)
    source = Object(
        machine,
        names=3,
        sections=[
            Section("", 0, align=0),
            symbols,
            Section(".strtab", STRTAB),
            Section(".shstrtab", STRTAB),
            Section(".note.GNU-stack", PROGBITS),
        ],
    )
    source.set_symbols(symbols, [Symbol("", LOCAL)])
    return source


def _add_data(source: Object, data: Data) -> None:
    index = len(source.sections)
    source.sections.append(
        Section(
            f".rodata.{data.symbol}",
            PROGBITS,
            ALLOC,
            align=data.align,
            size=data.size,
            chunks=data.chunks,
        )
    )
    table = source.find(SYMTAB)
    assert table is not None
    symbols = source.symbols(table)
    symbol = next((s for s in symbols if s.binding != LOCAL and s.name == data.symbol), None)
    if symbol is None:
        symbol = Symbol(data.symbol)
        symbols.append(symbol)
    elif symbol.section != UNDEFINED:
        raise ValueError(f"the object defines {data.symbol} already")
    symbol.binding, symbol.type, symbol.section = GLOBAL, TYPE_OBJECT, index
    symbol.value, symbol.size = 0, data.size
    symbol.other = symbol.other & ~3 | (HIDDEN if data.hidden else symbol.other & 3)
    source.set_symbols(table, symbols)
