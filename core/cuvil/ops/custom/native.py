"""The C functions behind a custom operator: which one serves which types, where it is, how it is
called.

A function takes, for every input and then every output, a pointer to dense row-major elements, a
pointer to the extents and their count (NULL, NULL, 0 for an input that is absent; arrays of these
and their length for a variadic input); then the attributes in the order of their declaration. It
returns 0, or a status that makes the run fail.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuvil.errors import OptionError
from cuvil.ir.c_types import C_TYPES
from cuvil.ops.custom.signature import Misfit, Parameter, Signature

__all__ = ["ATTRIBUTE_TYPES", "Binary", "Native", "NativeRow", "prototype"]

RESERVED = frozenset(("memcpy", "memmove", "memset", "memcmp", "main"))
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOLE = re.compile(r"\{(\w+)\}")

# Attribute kind -> the C types of its parameters; `{}` is the attribute's name.
ATTRIBUTE_TYPES: Mapping[str, tuple[str, ...]] = {
    "int": ("int64_t {}",),
    "float": ("double {}",),
    "bool": ("int64_t {}",),
    "str": ("const char *{}",),
    "ints": ("const int64_t *{}", "int64_t {}_count"),
    "floats": ("const double *{}", "int64_t {}_count"),
    "bools": ("const int64_t *{}", "int64_t {}_count"),
    "strs": ("const char *const *{}", "int64_t {}_count"),
}


@dataclass(frozen=True)
class Binary:
    """Where a function is. kind: "library" (shared), "object" (or archive), "source" (C).

    path: of the file, absolute; "" where `text` is the source. flags: of the C compiler.
    """

    kind: str
    path: str = ""
    text: str = ""
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.path or "its C source"

    @property
    def digest(self) -> str:
        """Of what it holds now; of nothing where the file is not there."""
        state = hashlib.blake2b(digest_size=32)
        state.update(repr((self.kind, self.text, self.flags)).encode())
        if self.path:
            try:
                state.update(Path(self.path).read_bytes())
            except OSError:
                state.update(b"missing")
        return state.hexdigest()


@dataclass(frozen=True)
class NativeRow:
    """One function. symbol: its name, where `{T}` stands for the element type of variable T.

    kind: the element type of the first type variable that it is for; None: for any.
    """

    symbol: str
    kind: str | None
    binary: Binary | None


@dataclass
class Native:
    """All functions of an operator."""

    rows: list[NativeRow] = field(default_factory=list)

    def add(
        self,
        signature: Signature,
        symbol: str | Mapping[str, str],
        kind: str | None,
        binary: Binary | None,
    ) -> None:
        """Adds a function, or one for each row of a table. OptionError for one that cannot be."""
        name, variables = signature.name, list(signature.types)
        table = symbol if isinstance(symbol, Mapping) else {kind: symbol}
        for key, word in table.items():
            bare = _HOLE.sub("x", word)
            if not _SYMBOL.fullmatch(bare) or word in RESERVED or word.startswith("cuvil"):
                raise OptionError(f"{name}: {word!r} cannot be the name of a C function of yours")
            holes = _HOLE.findall(word)
            unknown = sorted(set(holes) - set(variables))
            if unknown:
                raise OptionError(f"{name}: symbol {word!r}: there is no type {unknown[0]}")
            told = {*holes, *([variables[0]] if key is not None and variables else [])}
            open_ = [v for v in variables if v not in told and len(signature.types[v]) != 1]
            if open_:
                raise OptionError(
                    f"{name}: function {word} takes one element type, but {open_[0]} may be any: "
                    f'say which (dtype="f32", a table {{"f32": ...}}, \'{word}_{{{open_[0]}}}\', '
                    f'or types={{"{open_[0]}": ["f32"]}})'
                )
            if key is not None and any(r.kind == key for r in self.rows):
                raise OptionError(f"{name}: there are two functions for {key}")
            self.rows.append(NativeRow(word, key, binary))

    def kinds(self) -> tuple[str, ...]:
        """The element types that there are functions for; () where one takes any."""
        kinds = [row.kind for row in self.rows]
        return () if None in kinds else tuple(str(kind) for kind in kinds)

    def row(self, signature: Signature, bound: Mapping[str, str]) -> NativeRow:
        """The function for these types, its name without holes; raises Misfit."""
        if "string" in bound.values():
            raise Misfit("its C function cannot take strings")
        first = bound.get(next(iter(signature.types), ""), "")
        for row in self.rows:
            if row.kind in (None, first):
                symbol = _HOLE.sub(lambda match: bound[match[1]], row.symbol)
                return NativeRow(symbol, row.kind, row.binary)
        known = ", ".join(str(r.kind) for r in self.rows)
        raise Misfit(f"there is native code for {known}, not for {first}")


def binary(
    name: str,
    library: str | os.PathLike[str] | None,
    object: str | os.PathLike[str] | None,
    source: str | os.PathLike[str] | None,
    flags: Sequence[str],
) -> Binary | None:
    """The one of them that is given. OptionError for several."""
    given = {"library": library, "object": object, "source": source}
    chosen = [(kind, value) for kind, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise OptionError(f"{name}: give one of library, object and source, not {len(chosen)}")
    if not chosen:
        return None
    kind, value = chosen[0]
    words = tuple(flags)
    if kind == "source" and isinstance(value, str) and "\n" in value:
        return Binary(kind, text=value, flags=words)
    return Binary(kind, os.path.abspath(value), flags=words)


def prototype(signature: Signature, symbol: str, bound: Mapping[str, str]) -> str:
    """The C declaration of a function for these element types."""
    words: list[str] = []
    for parameters, const in ((signature.inputs, "const "), (signature.outputs, "")):
        for p in parameters:
            words += _tensor(p, const, C_TYPES[bound.get(p.kind, p.kind)])
    for name, attr in signature.attrs.items():
        words += [text.format(name) for text in ATTRIBUTE_TYPES[attr.kind]]
    return f"int32_t {symbol}({', '.join(words)});"


def _tensor(p: Parameter, const: str, c_type: str) -> list[str]:
    if p.variadic:
        return [f"{const}{c_type} *const *{p.name}", f"const int64_t *const *{p.name}_dims",
                f"const int64_t *{p.name}_ranks", f"int64_t {p.name}_count"]  # fmt: skip
    return [f"{const}{c_type} *{p.name}", f"const int64_t *{p.name}_dims", f"int64_t {p.name}_rank"]
