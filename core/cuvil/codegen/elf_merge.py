"""Several relocatable objects as one: units that were compiled apart, with no linker at hand.

Sections stay as they are, one after another; only symbols are resolved between the objects, and
relocations renumbered. What `keep` does not name becomes local.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from cuvil.codegen.elf_file import (
    GLOBAL,
    LOCAL,
    REL_TYPES,
    RELOCATABLE,
    RESERVED,
    STRTAB,
    SYMTAB,
    UNDEFINED,
    Machine,
    Object,
    Section,
    Symbol,
    read_object,
    write_object,
)
from cuvil.errors import ArtefactError

ADDRESS_TABLE = 0x6FFF4C03  # SHT_LLVM_ADDRSIG
ATTRIBUTES = 0x70000003  # of the processor: what its code needs, in every object
LINK_ORDER = 0x80  # section flag: `link` is another section's number
TYPE_FILE = 4
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
        self.relocations: list[tuple[Section, list[Symbol], int]] = []
        self.machine: Machine | None = None

    def add(self, source: Object) -> None:
        """Takes over an object's sections and symbols."""
        if source.type != RELOCATABLE or self.machine not in (None, source.machine):
            raise ArtefactError("only relocatable objects for one machine can be merged")
        self.machine = source.machine
        places: dict[int, int] = {}
        ordered: list[Section] = []
        for i, section in enumerate(source.sections):
            if section.type and section.type not in (*_DROPPED, *REL_TYPES):
                if section.type == ATTRIBUTES and self._knows(section):
                    continue
                places[i] = len(self.sections)
                self.sections.append(section)
                ordered += [section] * bool(section.flags & LINK_ORDER)
        for section in ordered:
            section.link = places.get(section.link, 0)
        table = source.find(SYMTAB)
        symbols = source.symbols(table) if table else []
        numbered = [self._symbol(s, places) for s in symbols]
        for section in source.sections:
            if section.type in REL_TYPES and section.info in places:
                self.relocations.append((section, numbered, places[section.info]))

    def _knows(self, attributes: Section) -> bool:
        """Whether an object before had the same attributes."""
        data = attributes.data()
        return any(s.type == ATTRIBUTES and s.data() == data for s in self.sections)

    def _symbol(self, symbol: Symbol, places: dict[int, int]) -> Symbol:
        if UNDEFINED < symbol.section < RESERVED:
            symbol.section = places.get(symbol.section, UNDEFINED)
        if symbol.binding == LOCAL:
            if symbol.section and symbol.type != TYPE_FILE:  # 0: of a section that was left out
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
        assert self.machine is not None
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
        for section, symbols, place in self.relocations:
            section.link, section.info = table_index, place
            section.replace(_renumber(self.machine, section, symbols, numbers))
            self.sections.append(section)
        table = Section(".symtab", SYMTAB, link=table_index + 1)
        names = Section(".strtab", STRTAB)
        self.sections += [table, names, Section(".shstrtab", STRTAB)]
        merged = Object(self.machine, RELOCATABLE, table_index + 2, self.sections)
        merged.set_symbols(table, ordered)
        return merged


def _renumber(
    machine: Machine, section: Section, symbols: Sequence[Symbol], numbers: dict[int, int]
) -> bytes:
    rows = machine.format.relocations(section.data(), REL_TYPES[section.type])
    return machine.format.pack_relocations(
        ((at, numbers.get(id(symbols[old]), 0), kind, more) for at, old, kind, more in rows),
        REL_TYPES[section.type],
    )
