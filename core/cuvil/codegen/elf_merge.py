"""Several relocatable objects as one: units that were compiled apart, with no linker at hand.

Sections stay as they are, one after another; only symbols are resolved between the objects, and
relocations renumbered. What `keep` does not name becomes local.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from cuvil.codegen.elf_file import (
    GLOBAL,
    LOCAL,
    RELOCATABLE,
    RESERVED,
    STRTAB,
    SYMTAB,
    UNDEFINED,
    Object,
    Section,
    Symbol,
    read_object,
    write_object,
)
from cuvil.errors import ArtefactError

RELA, ADDRESS_TABLE = 4, 0x6FFF4C03  # SHT_RELA, SHT_LLVM_ADDRSIG
TYPE_FILE = 4
_RELA = struct.Struct("<QQq")
_DROPPED = {SYMTAB, STRTAB, ADDRESS_TABLE}
_NONE: Mapping[str, str] = MappingProxyType({})


def merge_objects(
    path: str | os.PathLike[str],
    objects: Sequence[bytes],
    keep: Callable[[str], bool],
    rename: Mapping[str, str] = _NONE,
) -> None:
    """Writes the objects as one to `path`. keep: which defined symbols stay global. rename: what
    the others are called that stay global too.

    Raises ArtefactError when objects are for different machines or define a symbol twice.
    """
    merger = _Merger()
    for data in objects:
        merger.add(read_object(data))
    write_object(path, merger.finish(keep, rename))


class _Merger:
    def __init__(self) -> None:
        self.sections: list[Section] = [Section("", 0)]
        self.symbols: list[Symbol] = []
        self.globals: dict[str, Symbol] = {}
        self.relocations: list[tuple[Section, Section, list[Symbol], int]] = []
        self.machine: object = None

    def add(self, source: Object) -> None:
        """Takes over an object's sections and symbols."""
        if source.type != RELOCATABLE or self.machine not in (None, source.machine):
            raise ArtefactError("only relocatable objects for one machine can be merged")
        self.machine = source.machine
        places: dict[int, int] = {}
        for i, section in enumerate(source.sections):
            if section.type and section.type not in _DROPPED and section.type != RELA:
                places[i] = len(self.sections)
                self.sections.append(section)
        table = source.find(SYMTAB)
        symbols = source.symbols(table) if table else []
        numbered = [self._symbol(s, places) for s in symbols]
        for section in source.sections:
            if section.type == RELA and section.info in places:
                self.relocations.append(
                    (section, self.sections[places[section.info]], numbered, places[section.info])
                )

    def _symbol(self, symbol: Symbol, places: dict[int, int]) -> Symbol:
        if UNDEFINED < symbol.section < RESERVED:
            symbol.section = places.get(symbol.section, UNDEFINED)
        if symbol.binding == LOCAL:
            if (symbol.name or symbol.section) and symbol.type != TYPE_FILE:
                self.symbols.append(symbol)
            return symbol
        known = self.globals.get(symbol.name)
        if known is None:
            self.globals[symbol.name] = symbol
            self.symbols.append(symbol)
            return symbol
        if symbol.section != UNDEFINED:
            if known.section != UNDEFINED:
                raise ArtefactError(f"symbol '{symbol.name}' is defined twice")
            for name in ("binding", "type", "other", "section", "value", "size"):
                setattr(known, name, getattr(symbol, name))
        return known

    def finish(self, keep: Callable[[str], bool], rename: Mapping[str, str]) -> Object:
        """The merged object."""
        for old, new in rename.items():
            self.globals[old].name = new
        new_names = set(rename.values())
        for symbol in self.symbols:
            if symbol.name in new_names:
                continue
            if symbol.binding == GLOBAL and symbol.section != UNDEFINED and not keep(symbol.name):
                symbol.binding = LOCAL
        ordered = [Symbol("", LOCAL)]
        ordered += [s for s in self.symbols if s.binding == LOCAL]
        ordered += [s for s in self.symbols if s.binding != LOCAL]
        numbers = {id(s): i for i, s in enumerate(ordered)}
        table_index = len(self.sections) + len(self.relocations)
        for section, _, symbols, place in self.relocations:
            section.link, section.info = table_index, place
            section.replace(_renumber(section.data(), symbols, numbers))
            self.sections.append(section)
        table = Section(".symtab", SYMTAB, align=8, entry_size=24, link=table_index + 1)
        names = Section(".strtab", STRTAB)
        self.sections += [table, names, Section(".shstrtab", STRTAB)]
        merged = Object(self.machine, RELOCATABLE, table_index + 2, self.sections)  # type: ignore[arg-type]
        merged.set_symbols(table, ordered)
        return merged


def _renumber(data: bytes, symbols: Sequence[Symbol], numbers: dict[int, int]) -> bytes:
    rows = []
    for offset, info, addend in _RELA.iter_unpack(data):
        number = numbers.get(id(symbols[info >> 32]), 0)
        rows.append(_RELA.pack(offset, number << 32 | info & 0xFFFFFFFF, addend))
    return b"".join(rows)
