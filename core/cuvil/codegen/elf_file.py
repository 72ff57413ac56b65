"""Little-endian ELF files of 32 or 64 bits as a list of sections: read from bytes, written as a
stream.

Enough of the format for relocatable objects, and for looking into shared libraries. Layout:
System V ABI, chapters 4 and 5 (https://refspecs.linuxfoundation.org/elf/gabi4+).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cuvil.codegen.elf_format import FORMATS, ElfFormat
from cuvil.codegen.section_bytes import pad, write_chunks
from cuvil.errors import ArtefactError

__all__ = ["Machine", "Object", "Section", "Symbol", "read_object", "write_object"]

RELOCATABLE = 1
PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS, DYNSYM = 1, 2, 3, 7, 8, 11
REL_TYPES = {4: True, 9: False}  # SHT_RELA, SHT_REL -> whether relocations have an addend
ALLOC = 2  # section flag
LOCAL, GLOBAL = 0, 1  # symbol bindings
TYPE_OBJECT = 1
UNDEFINED, RESERVED = 0, 0xFF00  # section indices
HIDDEN = 2  # visibility


@dataclass(frozen=True, slots=True)
class Machine:
    """What two objects must share to be linked; copied from one that the code generator made."""

    machine: int  # e_machine
    flags: int  # e_flags
    abi: int = 0  # EI_OSABI
    abi_version: int = 0
    bits: int = 64  # of an address: EI_CLASS

    @property
    def format(self) -> ElfFormat:
        """How its files are laid out."""
        return FORMATS[self.bits]


@dataclass(slots=True)
class Section:
    """One section; `chunks` holds `size` bytes and may be an iterator that runs once."""

    name: str
    type: int
    flags: int = 0
    align: int = 1
    entry_size: int = 0
    link: int = 0
    info: int = 0
    address: int = 0
    size: int = 0
    chunks: Iterable[bytes | memoryview] = ()

    def data(self) -> bytes:
        """All bytes, of a section whose chunks can be iterated again."""
        return b"".join(self.chunks)

    def replace(self, data: bytes) -> None:
        """Sets the bytes."""
        self.size, self.chunks = len(data), (data,)


@dataclass(slots=True)
class Symbol:
    """One symbol; `section` is an index, 0 when undefined."""

    name: str
    binding: int = GLOBAL
    type: int = 0
    other: int = 0  # visibility in the low two bits, the rest is the machine's
    section: int = UNDEFINED
    value: int = 0
    size: int = 0


@dataclass(slots=True)
class Object:
    """A file of sections; the first is the null section, `names` the index of their names'."""

    machine: Machine
    type: int = RELOCATABLE
    names: int = 0
    sections: list[Section] = field(default_factory=list)

    def find(self, type: int) -> Section | None:
        """The first section of that type."""
        return next((section for section in self.sections if section.type == type), None)

    def symbols(self, table: Section) -> list[Symbol]:
        """The symbols of a table, the null symbol first."""
        if table.link >= len(self.sections):
            raise ArtefactError("damaged ELF file: a symbol table without names")
        strings = self.sections[table.link].data()
        rows = self.machine.format.symbols(table.data())
        return [
            Symbol(_text(strings, name), info >> 4, info & 15, other, section, value, size)
            for name, info, other, section, value, size in rows
        ]

    def set_symbols(self, table: Section, symbols: list[Symbol]) -> None:
        """Replaces a table's symbols, which have the local ones first, and its strings."""
        self.own_section_names()
        pool, format = _Strings(), self.machine.format
        rows = b"".join(
            format.pack_symbol(
                pool.add(s.name), s.binding << 4 | s.type, s.other, s.section, s.value, s.size
            )
            for s in symbols
        )
        table.replace(rows)
        table.align, table.entry_size = format.word, format.symbol.size
        table.info = sum(symbol.binding == LOCAL for symbol in symbols)
        self.sections[table.link].replace(pool.data())

    def own_section_names(self) -> None:
        """Gives the sections' names a table of their own, where symbols shared it."""
        if any(s.type == SYMTAB and s.link == self.names for s in self.sections):
            self.names = len(self.sections)
            self.sections.append(Section(".shstrtab", STRTAB))


def read_object(data: bytes | memoryview) -> Object:
    """Parses headers and sections; section bytes are views of `data`.

    ArtefactError for anything but a sound little-endian ELF file.
    """
    view = memoryview(data).cast("B")
    format = next((f for f in FORMATS.values() if bytes(view[: len(f.ident)]) == f.ident), None)
    if format is None or len(view) < format.header.size:
        raise ArtefactError("not a little-endian ELF file")
    header = format.header.unpack(view[: format.header.size])
    ident, kind, machine, _, _, _, start, flags, _, _, _, entry, count, names = header
    found = Object(Machine(machine, flags, ident[7], ident[8], format.bits), kind, names)
    if start + count * format.section.size > len(view) or (count and entry != format.section.size):
        raise ArtefactError("damaged ELF file: section table outside the file")
    rows = list(format.section.iter_unpack(view[start : start + count * format.section.size]))
    if not rows or not 0 < names < count:
        raise ArtefactError("damaged ELF file: no section names")
    found.sections = [_section(view, row) for row in rows]
    strings = found.sections[names].data()
    for section, row in zip(found.sections, rows, strict=True):
        section.name = _text(strings, row[0])
    return found


def _section(view: memoryview, row: tuple[int, ...]) -> Section:
    _, kind, flags, address, offset, size, link, info, align, entry_size = row
    section = Section("", kind, flags, align, entry_size, link, info, address, size)
    if kind not in (0, NOBITS):
        if offset + size > len(view):
            raise ArtefactError("damaged ELF file: a section outside the file")
        section.chunks = (view[offset : offset + size],)
    return section


def _text(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if offset > len(strings) or end < 0:
        raise ArtefactError("damaged ELF file: a name outside its table")
    return strings[offset:end].decode("utf-8", "surrogateescape")


class _Strings:
    """A string table under construction; equal strings share one place."""

    def __init__(self) -> None:
        self._bytes = bytearray(b"\0")
        self._places: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._places:
            self._places[text] = len(self._bytes)
            self._bytes += text.encode("utf-8", "surrogateescape") + b"\0"
        return self._places[text]

    def data(self) -> bytes:
        return bytes(self._bytes)


def write_object(path: str | os.PathLike[str], source: Object) -> None:
    """Writes a relocatable object, section by section; the file is removed on failure.

    Peak memory is that of one chunk. ValueError when a section's chunks do not add up to its size.
    """
    source.own_section_names()
    if len(source.sections) >= RESERVED:
        raise ValueError(f"{len(source.sections)} sections; an object here has under {RESERVED}")
    names = _Strings()
    places = [names.add(section.name) for section in source.sections]
    source.sections[source.names].replace(names.data())
    format = source.machine.format
    offsets, end = _layout(source.sections, format.header.size)
    table = _aligned(end, format.word)
    try:
        with open(path, "wb") as out:
            out.write(_header(source, table))
            for section, offset in zip(source.sections, offsets, strict=True):
                _write_section(out, section, offset)
            pad(out, table)
            for section, name, offset in zip(source.sections, places, offsets, strict=True):
                out.write(_section_row(format, section, name, offset))
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _layout(sections: list[Section], end: int) -> tuple[list[int], int]:
    """The offset of each section in a file whose header ends there, and where they end."""
    offsets = []
    for section in sections:
        if section.type == 0:
            offsets.append(0)
            continue
        end = _aligned(end, section.align)
        offsets.append(end)
        if section.type != NOBITS:
            end += section.size
    return offsets, end


def _header(source: Object, table: int) -> bytes:
    machine, format = source.machine, source.machine.format
    ident = format.ident + bytes((machine.abi, machine.abi_version))
    count = len(source.sections)
    return format.header.pack(
        *(ident, source.type, machine.machine, 1, 0, 0, table, machine.flags),
        *(format.header.size, 0, 0, format.section.size, count, source.names),
    )


def _section_row(format: ElfFormat, section: Section, name: int, offset: int) -> bytes:
    return format.section.pack(
        *(name, section.type, section.flags, section.address, offset, section.size),
        *(section.link, section.info, section.align, section.entry_size),
    )


def _write_section(out: BinaryIO, section: Section, offset: int) -> None:
    if section.type in (0, NOBITS):
        return
    write_chunks(out, offset, section.name, section.size, section.chunks)


def _aligned(value: int, align: int) -> int:
    return -(-value // max(align, 1)) * max(align, 1)
