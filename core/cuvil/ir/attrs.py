"""Plain Python values to xDSL attributes and back, by the kinds a record declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute

from cuvil.ir.dims import Dim
from cuvil.ir.types import DimsAttr

KINDS = ("int", "float", "bool", "str", "ints", "floats", "strs", "bools", "dims", "dim")


@dataclass(frozen=True)
class Attr:
    """One attribute of a record: its kind and, where it may be left out, its default."""

    kind: str
    default: Any = ...

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown attribute kind '{self.kind}'; known: {', '.join(KINDS)}")

    @property
    def required(self) -> bool:
        return self.default is ...


def to_ir(kind: str, value: Any) -> Attribute:
    """The xDSL attribute for a Python value of a declared kind."""
    return _TO_IR[kind](value)


def from_ir(kind: str, attribute: Attribute) -> Any:
    """The Python value of an attribute: tuples for lists, int or SymDim for dims."""
    return _FROM_IR[kind](attribute)


def _dims(value: tuple[Dim, ...]) -> Attribute:
    return DimsAttr.new(tuple(value))


_TO_IR: dict[str, Callable[[Any], Attribute]] = {
    "int": lambda v: IntegerAttr(int(v), i64),
    "float": lambda v: FloatAttr(float(v), f64),
    "bool": lambda v: BoolAttr.from_bool(bool(v)),
    "str": StringAttr,
    "ints": lambda v: DenseArrayBase.from_list(i64, [int(x) for x in v]),
    # A dense array's text cannot hold inf, nan and what is written in hexadecimal.
    "floats": lambda v: ArrayAttr([FloatAttr(float(x), f64) for x in v]),
    "bools": lambda v: DenseArrayBase.from_list(i64, [int(x) for x in v]),
    "strs": lambda v: ArrayAttr([StringAttr(s) for s in v]),
    "dims": _dims,
    "dim": lambda v: _dims((v,)),
}
_FROM_IR: dict[str, Callable[[Any], Any]] = {
    "int": lambda a: a.value.data,
    "float": lambda a: a.value.data,
    "bool": lambda a: bool(a.value.data),
    "str": lambda a: a.data,
    "ints": lambda a: tuple(a.get_values()),
    "floats": lambda a: tuple(x.value.data for x in a.data),
    "bools": lambda a: tuple(bool(x) for x in a.get_values()),
    "strs": lambda a: tuple(s.data for s in a.data),
    "dims": lambda a: a.data,
    "dim": lambda a: a.data[0],
}


class Attrs(SimpleNamespace):
    """A primitive's attributes as plain Python values, defaults filled in."""


def read_attrs(schema: Mapping[str, Attr], properties: Mapping[str, Attribute]) -> Attrs:
    """Every attribute of the schema, from an op's properties or the default."""
    values = {
        name: from_ir(attr.kind, properties[name]) if name in properties else attr.default
        for name, attr in schema.items()
    }
    return Attrs(**values)


def write_attrs(
    owner: str, schema: Mapping[str, Attr], values: Mapping[str, Any]
) -> dict[str, Attribute]:
    """xDSL properties for the given values; those equal to their default are left out.

    Raises TypeError for an unknown or missing attribute: a fault of the caller, not of a model.
    """
    unknown = sorted(set(values) - set(schema))
    if unknown:
        raise TypeError(f"{owner} has no attribute {', '.join(unknown)}")
    missing = [n for n, a in schema.items() if a.required and n not in values]
    if missing:
        raise TypeError(f"{owner} needs attribute {', '.join(missing)}")
    return {
        name: to_ir(schema[name].kind, value)
        for name, value in values.items()
        if schema[name].required or value != schema[name].default
    }
