"""64-bit little-endian Mach-O objects as a list of sections: read from bytes, written as a stream.

Enough of the format for relocatable objects as LLVM writes them. Layout: Apple's "OS X ABI Mach-O
File Format Reference" and <mach-o/loader.h>, <mach-o/nlist.h>, <mach-o/reloc.h>.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from cuvil.codegen.section_bytes import pad, write_chunks
from cuvil.errors import ArtefactError

__all__ = ["MAGIC", "Object", "Relocation", "Section", "Symbol", "read_object", "write_object"]

MAGIC = b"\xcf\xfa\xed\xfe"
RELOCATABLE = 1
SEGMENT, SYMTAB, DYSYMTAB, BUILD_VERSION = 0x19, 0x2, 0xB, 0x32  # load commands
TYPE, ZEROFILL, INSTRUCTIONS = 0xFF, (1, 0xC), 0x80000400  # of a section's flags
EXTERNAL, PRIVATE, IN_SECTION, KIND = 0x01, 0x10, 0x0E, 0x0E  # of a symbol's type
_HEADER, _COMMAND = struct.Struct("<IiiIIIII"), struct.Struct("<II")
_SEGMENT, _SECTION = struct.Struct("<II16sQQQQiiII"), struct.Struct("<16s16sQQ8I")
_SYMTAB, _DYSYMTAB = struct.Struct("<6I"), struct.Struct("<20I")
_SYMBOL, _RELOCATION = struct.Struct("<IBBHQ"), struct.Struct("<iI")
_WORD, _START_ALIGN, _ALL_RIGHTS = 8, 64, 7


@dataclass(slots=True)
class Relocation:
    """One place that a linker fills in. number: of a symbol where it is external, else of a section
    from 1 on (or an addend, by its kind)."""

    address: int
    number: int
    relative: bool
    length: int
    external: bool
    kind: int


@dataclass(slots=True)
class Section:
    """One section; `chunks` holds `size` bytes and may be an iterator that runs once. align: in
    bytes. address: in the object it comes from."""

    segment: str
    name: str
    flags: int = 0
    align: int = 1
    address: int = 0
    size: int = 0
    chunks: Iterable[bytes | memoryview] = ()
    relocations: list[Relocation] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether it takes no bytes of a file."""
        return self.flags & TYPE in ZEROFILL

    @property
    def code(self) -> bool:
        """Whether it holds instructions."""
        return bool(self.flags & INSTRUCTIONS)


@dataclass(slots=True)
class Symbol:
    """One symbol. section: from 1 on, 0 when undefined; value: an address in the object."""

    name: str
    type: int = EXTERNAL
    section: int = 0
    description: int = 0
    value: int = 0


@dataclass(slots=True)
class Object:
    """A relocatable object. machine: cpu type and subtype; version: the command that tells for
    which system it is made."""

    machine: tuple[int, int]
    flags: int = 0
    version: bytes = b""
    sections: list[Section] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)


def read_object(data: bytes | memoryview) -> Object:
    """Parses an object; section bytes are views of `data`. ArtefactError for anything else."""
    view = memoryview(data).cast("B")
    if bytes(view[:4]) != MAGIC:
        raise ArtefactError("not a 64-bit Mach-O file")
    try:
        return _read(view)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ArtefactError(f"damaged Mach-O file: {error}") from error


def _read(view: memoryview) -> Object:
    _, cpu, subtype, kind, count, _, flags, _ = _HEADER.unpack_from(view)
    if kind != RELOCATABLE:
        raise ArtefactError("not a relocatable Mach-O file")
    found, at = Object((cpu, subtype), flags), _HEADER.size
    for _ in range(count):
        command, size = _COMMAND.unpack_from(view, at)
        if command == SEGMENT:
            found.sections = list(_sections(view, at))
        elif command == SYMTAB:
            found.symbols = list(_symbols(view, at))
        elif command == BUILD_VERSION:
            found.version = bytes(view[at : at + size])
        at += max(size, _COMMAND.size)
    return found


def _sections(view: memoryview, at: int) -> Iterator[Section]:
    count = _SEGMENT.unpack_from(view, at)[9]
    for i in range(count):
        row = _SECTION.unpack_from(view, at + _SEGMENT.size + i * _SECTION.size)
        name, segment, address, size, offset, align, place, relocations, flags, *_ = row
        section = Section(_text(segment), _text(name), flags, 1 << align, address, size)
        if not section.empty:
            if offset + size > len(view):
                raise ArtefactError("damaged Mach-O file: a section outside the file")
            section.chunks = (view[offset : offset + size],)
        for j in range(relocations):
            where, bits = _RELOCATION.unpack_from(view, place + j * _RELOCATION.size)
            section.relocations.append(
                Relocation(
                    where, bits & 0xFFFFFF, bool(bits >> 24 & 1), bits >> 25 & 3,
                    bool(bits >> 27 & 1), bits >> 28,
                )
            )  # fmt: skip
        yield section


def _symbols(view: memoryview, at: int) -> Iterator[Symbol]:
    _, _, place, count, strings, size = _SYMTAB.unpack_from(view, at)
    names = bytes(view[strings : strings + size])
    for i in range(count):
        name, kind, section, description, value = _SYMBOL.unpack_from(view, place + 16 * i)
        end = names.index(b"\0", name)
        yield Symbol(names[name:end].decode(), kind, section, description, value)


def _text(name: bytes) -> str:
    return name.rstrip(b"\0").decode()


def write_object(path: str | os.PathLike[str], source: Object) -> None:
    """Writes an object; the file is removed on failure. Sections get new addresses: values of
    symbols count from their section. Peak memory is that of one chunk.

    ValueError when a section's chunks do not add up to its size.
    """
    ordered = _ordered(source)
    commands = _SEGMENT.size + len(ordered.sections) * _SECTION.size + len(ordered.version)
    commands += _SYMTAB.size + _DYSYMTAB.size
    start = _aligned(_HEADER.size + commands, _START_ALIGN)
    end, filled = _place(ordered.sections)
    places, tail = [], _aligned(start + filled, _WORD)
    for section in ordered.sections:
        places.append(tail)
        tail += len(section.relocations) * _RELOCATION.size
    symbols, strings = _symbol_table(ordered)
    count = 4 if ordered.version else 3
    try:
        with open(path, "wb") as out:
            out.write(_HEADER.pack(0xFEEDFACF, *ordered.machine, RELOCATABLE, count, commands,
                                   ordered.flags, 0))  # fmt: skip
            out.write(_segment(ordered.sections, start, end, filled, places))
            out.write(ordered.version)
            out.write(_SYMTAB.pack(SYMTAB, _SYMTAB.size, tail, len(ordered.symbols),
                                   tail + len(symbols), len(strings)))  # fmt: skip
            out.write(_dynamic(ordered.symbols))
            for section in ordered.sections:
                _write_section(out, section, start)
            pad(out, _aligned(start + filled, _WORD))
            for section in ordered.sections:
                out.write(b"".join(map(_packed, section.relocations)))
            out.write(symbols + strings)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _ordered(source: Object) -> Object:
    """Sections that take no bytes last; local symbols first, then defined and undefined ones by
    name; all that refers to them renumbered."""
    sections = sorted(source.sections, key=lambda section: section.empty)
    order = {id(s): n + 1 for n, s in enumerate(sections)}
    section_of = [0, *(order[id(s)] for s in source.sections)]
    groups = [(not s.type & EXTERNAL, bool(s.section)) for s in source.symbols]
    keys = [(0 if local else 2 - known, "" if local else s.name)
            for s, (local, known) in zip(source.symbols, groups, strict=True)]  # fmt: skip
    ranked = sorted(range(len(keys)), key=keys.__getitem__)
    symbol_of = {old: new for new, old in enumerate(ranked)}
    for section in sections:
        for entry in section.relocations:
            if entry.external:
                entry.number = symbol_of[entry.number]
    symbols = [replace(source.symbols[old]) for old in ranked]
    for symbol in symbols:
        symbol.section = section_of[symbol.section]
    return Object(source.machine, source.flags, source.version, sections, symbols)


def _place(sections: list[Section]) -> tuple[int, int]:
    """Gives sections their addresses; returns where they end, in memory and in a file."""
    end = filled = 0
    for section in sections:
        section.address = _aligned(end, section.align)
        end = section.address + section.size
        filled = filled if section.empty else end
    return end, filled


def _segment(
    sections: list[Section], start: int, end: int, filled: int, places: list[int]
) -> bytes:
    size = _SEGMENT.size + len(sections) * _SECTION.size
    rows = [_SEGMENT.pack(SEGMENT, size, b"", 0, end, start, filled, _ALL_RIGHTS, _ALL_RIGHTS,
                          len(sections), 0)]  # fmt: skip
    for section, place in zip(sections, places, strict=True):
        offset = 0 if section.empty else start + section.address
        count = len(section.relocations)
        rows.append(_SECTION.pack(
            section.name.encode(), section.segment.encode(), section.address, section.size, offset,
            section.align.bit_length() - 1, place if count else 0, count, section.flags, 0, 0, 0,
        ))  # fmt: skip
    return b"".join(rows)


def _dynamic(symbols: list[Symbol]) -> bytes:
    local = sum(not s.type & EXTERNAL for s in symbols)
    defined = sum(bool(s.type & EXTERNAL and s.section) for s in symbols)
    rows = (0, local, local, defined, local + defined, len(symbols) - local - defined)
    return _DYSYMTAB.pack(DYSYMTAB, _DYSYMTAB.size, *rows, *[0] * 12)


def _symbol_table(source: Object) -> tuple[bytes, bytes]:
    rows, strings = [], bytearray(b"\0")
    for symbol in source.symbols:
        base = source.sections[symbol.section - 1].address if symbol.section else 0
        rows.append(_SYMBOL.pack(len(strings), symbol.type, symbol.section, symbol.description,
                                 base + symbol.value))  # fmt: skip
        strings += symbol.name.encode() + b"\0"
    strings += bytes(-len(strings) % _WORD)
    return b"".join(rows), bytes(strings)


def _packed(entry: Relocation) -> bytes:
    bits = entry.number | entry.relative << 24 | entry.length << 25
    return _RELOCATION.pack(entry.address, bits | entry.external << 27 | entry.kind << 28)


def _write_section(out: BinaryIO, section: Section, start: int) -> None:
    if section.empty:
        return
    write_chunks(out, start + section.address, section.name, section.size, section.chunks)


def _aligned(value: int, align: int) -> int:
    return -(-value // align) * align
