"""Several Mach-O objects as one, and what an object defines and asks for.

Sections of one name become one section, so that a file has few; only symbols are resolved between
the objects. Names are those of C: the underscore that the format puts in front stays in here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from cuvil.codegen.elf import Data
from cuvil.codegen.macho_file import (
    EXTERNAL,
    IN_SECTION,
    PRIVATE,
    Object,
    Section,
    Symbol,
    read_object,
    write_object,
)
from cuvil.errors import ArtefactError

Bytes = bytes | memoryview
PREFIX = "_"
_ADDEND = 10  # kind of a relocation whose number is no symbol's
_CONSTANTS = ("__TEXT", "__const")
_NONE: Mapping[str, str] = MappingProxyType({})


def merge_objects(
    path: str | os.PathLike[str],
    objects: Sequence[bytes],
    keep: Callable[[str], bool],
    rename: Mapping[str, str] = _NONE,
    data: Sequence[Data] = (),
) -> None:
    """Writes the objects as one to `path`. keep: which defined symbols stay global. rename: what
    the others are called that stay global too. data: read-only data to add, streamed.

    Raises ArtefactError when objects are for different machines or define a symbol twice.
    """
    merger = _Merger()
    for each in objects:
        merger.add(read_object(each))
    write_object(path, merger.finish(keep, rename, data))


class _Merger:
    def __init__(self) -> None:
        self.found: Object | None = None
        self.numbers: dict[str, int] = {}  # of global symbols

    def add(self, source: Object) -> None:
        """Takes over an object's sections and symbols."""
        if self.found is None:
            self.found = Object(source.machine, source.flags, source.version)
        if self.found.machine != source.machine:
            raise ArtefactError("only relocatable objects for one machine can be merged")
        places = [self._append(section) for section in source.sections]
        symbols = [self._symbol(symbol, source, places) for symbol in source.symbols]
        for section, (index, shift) in zip(source.sections, places, strict=True):
            target = self.found.sections[index]
            for entry in section.relocations:
                if not entry.external and entry.kind != _ADDEND:
                    raise ArtefactError(f"{section.name} refers to a section without a symbol")
                number = symbols[entry.number] if entry.external else entry.number
                moved = replace(entry, address=entry.address + shift, number=number)
                target.relocations.append(moved)

    def _append(self, section: Section) -> tuple[int, int]:
        """Puts a section behind those of its name: number of that, and where it begins there."""
        assert self.found is not None
        key = (section.segment, section.name, section.flags)
        for index, known in enumerate(self.found.sections):
            if (known.segment, known.name, known.flags) == key:
                return index, _extend(known, section.chunks, section.size, section.align)
        self.found.sections.append(replace(section, relocations=[]))
        return len(self.found.sections) - 1, 0

    def _symbol(self, symbol: Symbol, source: Object, places: list[tuple[int, int]]) -> int:
        """The number of a symbol, whose value counts from its section's start from now on."""
        assert self.found is not None
        if symbol.section:
            index, shift = places[symbol.section - 1]
            value = symbol.value - source.sections[symbol.section - 1].address + shift
            symbol = replace(symbol, section=index + 1, value=value)
        symbols = self.found.symbols
        known = self.numbers.get(symbol.name) if symbol.type & EXTERNAL else None
        if known is None:
            symbols.append(symbol)
            if symbol.type & EXTERNAL:
                self.numbers[symbol.name] = len(symbols) - 1
            return len(symbols) - 1
        if symbol.section:
            if symbols[known].section:
                raise ArtefactError(f"symbol '{symbol.name}' is defined twice")
            symbols[known] = symbol
        return known

    def finish(
        self, keep: Callable[[str], bool], rename: Mapping[str, str], data: Sequence[Data]
    ) -> Object:
        """The merged object."""
        assert self.found is not None
        for item in data:
            self._add_data(item)
        added = {PREFIX + item.symbol for item in data}
        for symbol in self.found.symbols:
            name = symbol.name.removeprefix(PREFIX)
            if name in rename and symbol.type & EXTERNAL:
                symbol.name = PREFIX + rename[name]
                continue
            if symbol.section and not keep(name) and symbol.name not in added:
                symbol.type &= ~(EXTERNAL | PRIVATE)
        return self.found

    def _add_data(self, item: Data) -> None:
        """Behind the constants of code. A hidden symbol is not for users of what is linked."""
        assert self.found is not None
        sections = self.found.sections
        index = next((i for i, s in enumerate(sections) if (s.segment, s.name) == _CONSTANTS), -1)
        if index < 0:
            sections.append(Section(*_CONSTANTS))
            index = len(sections) - 1
        start = _extend(sections[index], item.chunks, item.size, item.align)
        kind = IN_SECTION | EXTERNAL | (PRIVATE if item.hidden else 0)
        name = PREFIX + item.symbol
        made = Symbol(name, kind, index + 1, 0, start)
        if name in self.numbers:
            self.found.symbols[self.numbers[name]] = made
        else:
            self.found.symbols.append(made)


def _extend(section: Section, chunks: Iterable[Bytes], size: int, align: int) -> int:
    """Adds bytes to a section; where they begin."""
    start = -(-section.size // align) * align
    if not section.empty:
        section.chunks = chain(section.chunks, (bytes(start - section.size),), chunks)
    section.size, section.align = start + size, max(section.align, align)
    return start


def undefined_symbols(data: Bytes) -> list[str]:
    """The names that an object imports, sorted."""
    return sorted({_name(s) for s in read_object(data).symbols if not s.section})


def defined_globals(data: Bytes, *, exported: bool = False) -> list[str]:
    """The global names that an object defines, sorted; `exported` leaves out hidden ones."""
    found = [s for s in read_object(data).symbols if s.section and s.type & EXTERNAL]
    return sorted({_name(s) for s in found if not (exported and s.type & PRIVATE)})


def functions(data: Bytes) -> tuple[int, list[tuple[str, int]]]:
    """Bytes of code in an object, and its functions with their sizes."""
    source, found, total = read_object(data), [], 0
    for number, section in enumerate(source.sections, 1):
        if not section.code:
            continue
        total += section.size
        inside = [s for s in source.symbols if s.section == number and s.name.startswith(PREFIX)]
        inside.sort(key=lambda s: s.value)
        bounds = [*(s.value for s in inside), section.address + section.size]
        found += [(_name(s), end - s.value) for s, end in zip(inside, bounds[1:], strict=True)]
    return total, found


def _name(symbol: Symbol) -> str:
    return symbol.name.removeprefix(PREFIX)
