"""The two widths of ELF files: how each lays out headers, sections, symbols and relocations.

System V ABI, chapter 4 (https://refspecs.linuxfoundation.org/elf/gabi4+): the fields are the same,
their widths differ, and so does the order of a symbol's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

__all__ = ["FORMATS", "ElfFormat", "Relocation"]

Relocation = tuple[int, int, int, int]
"""Offset, number of the symbol, type, addend (0 where the addend lies in the section)."""


@dataclass(frozen=True)
class ElfFormat:
    """One width. bits: of an address. ident: how such a file begins, little-endian. header,
    section: records of the same fields in both. symbol, rel, rela: theirs."""

    bits: int
    ident: bytes
    header: struct.Struct
    section: struct.Struct
    symbol: struct.Struct
    rel: struct.Struct
    rela: struct.Struct

    @property
    def word(self) -> int:
        """Bytes of an address."""
        return self.bits // 8

    def symbols(self, data: bytes) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(name, info, other, section, value, size) of each whole record."""
        rows = self.symbol.iter_unpack(data[: len(data) - len(data) % self.symbol.size])
        if self.bits == 64:
            return rows
        return (
            (name, info, other, section, value, size)
            for name, value, size, info, other, section in rows
        )

    def pack_symbol(
        self, name: int, info: int, other: int, section: int, value: int, size: int
    ) -> bytes:
        """The record of a symbol."""
        if self.bits == 64:
            return self.symbol.pack(name, info, other, section, value, size)
        return self.symbol.pack(name, value, size, info, other, section)

    def relocations(self, data: bytes, addends: bool) -> Iterator[Relocation]:
        """The records of a table, with or without a field for addends."""
        shift, low = (32, 0xFFFFFFFF) if self.bits == 64 else (8, 0xFF)
        for offset, info, *addend in (self.rela if addends else self.rel).iter_unpack(data):
            yield offset, info >> shift, info & low, addend[0] if addend else 0

    def pack_relocations(self, rows: Iterable[Relocation], addends: bool) -> bytes:
        """A table of relocations."""
        shift = 32 if self.bits == 64 else 8
        pack = self.rela.pack if addends else partial(_without_addend, self.rel)
        return b"".join(pack(at, symbol << shift | kind, more) for at, symbol, kind, more in rows)


def _without_addend(row: struct.Struct, offset: int, info: int, addend: int) -> bytes:
    return row.pack(offset, info)


def _format(bits: int, kind: int, records: Sequence[str]) -> ElfFormat:
    return ElfFormat(bits, bytes((0x7F, *b"ELF", kind, 1, 1)), *map(struct.Struct, records))


FORMATS = {
    64: _format(
        64, 2, ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQ", "<QQq")
    ),
    32: _format(
        32, 1, ("<16sHHIIIIIHHHHHH", "<IIIIIIIIII", "<IIIBBH", "<II", "<IIi")
    ),
}  # fmt: skip
