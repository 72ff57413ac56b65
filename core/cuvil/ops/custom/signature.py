"""What a custom operator takes and gives, as declared and as used; the refusal that shows both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuvil.errors import OptionError, SignatureError
from cuvil.ir.attrs import Attr
from cuvil.ir.dtypes import DTYPES, dtype, from_numpy
from cuvil.ir.types import TensorType

__all__ = ["Misfit", "Parameter", "Signature", "attribute_of", "kind_of", "used"]

_PARAMETER = re.compile(r"(?:(\w+)\s*:\s*)?(\w+)(\?|\.\.\.)?")
_LONGEST = 60  # characters of a value in a message
_KINDS = {int: "int", float: "float", bool: "bool", str: "str"}
_DTYPES = {row.name for row in DTYPES if row.kind in ("bool", "int", "uint", "float")}


class Misfit(Exception):
    """Why a use does not fit a declaration, in words."""


@dataclass(frozen=True)
class Parameter:
    """An input or output. kind: an element type, or the name of a type variable.

    variadic: one or more inputs, the last ones, stand for it.
    """

    name: str
    kind: str
    optional: bool = False
    variadic: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}{'?' * self.optional}{'...' * self.variadic}"


@dataclass
class Signature:
    """A declaration. types: type variable -> the element types that it may stand for, none: any."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attrs: Mapping[str, Attr]
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, Any] | None,
        types: Mapping[str, Sequence[str]] | None,
    ) -> Signature:
        """From what a person wrote; OptionError says what is wrong with it."""
        ins = _parameters(name, inputs, "x")
        outs = _parameters(name, outputs, "y")
        if not outs or any(p.optional or p.variadic for p in outs):
            raise OptionError(
                f"{name}: an operator has at least one output, and no optional or variadic ones"
            )
        if any(p.variadic for p in ins[:-1]):
            raise OptionError(f"{name}: only the last input can be variadic")
        attrs = {word: attribute_of(name, word, v) for word, v in (attributes or {}).items()}
        names = [p.name for p in (*ins, *outs)] + list(attrs)
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise OptionError(f"{name}: two parameters are called {', '.join(twice)}")
        variables = [p.kind for p in ins if p.kind not in _DTYPES]
        found: dict[str, tuple[str, ...]] = dict.fromkeys(variables, ())
        for variable, kinds in (types or {}).items():
            if variable not in found:
                raise OptionError(f"{name}: no input is of type {variable}")
            found[variable] = tuple(_element(name, kind) for kind in kinds)
        free = [p.kind for p in outs if p.kind not in _DTYPES and p.kind not in found]
        if free:
            raise OptionError(f"{name}: no input tells what the output's type {free[0]} is")
        return Signature(name, ins, outs, attrs, found)

    @property
    def required(self) -> int:
        """How many leading inputs must be there."""
        return max((i + 1 for i, p in enumerate(self.inputs) if not p.optional), default=0)

    @property
    def is_variadic(self) -> bool:
        """Whether the last input stands for several."""
        return bool(self.inputs) and self.inputs[-1].variadic

    def spread(self, count: int) -> list[Parameter]:
        """The parameters of `count` inputs, or of all that are declared if these are more."""
        return [*self.inputs, *self.inputs[-1:] * (count - len(self.inputs))]

    def __str__(self) -> str:
        ins, outs = (", ".join(map(str, ps)) for ps in (self.inputs, self.outputs))
        text = f"{self.name}({ins}) -> ({outs})"
        for variable, kinds in self.types.items():
            text += f", {variable} in {{{', '.join(kinds)}}}" if kinds else ""
        return text + _attributes(_declared(n, a) for n, a in self.attrs.items())

    def bind(self, given: Sequence[TensorType | None]) -> dict[str, str]:
        """The element type of each variable for inputs of these types; raises Misfit."""
        least, most = self.required, len(self.inputs)
        if len(given) < least or (len(given) > most and not self.is_variadic):
            wanted = str(most) if least == most else f"{least} to {most}"
            wanted = f"{least} or more" if self.is_variadic else wanted
            raise Misfit(f"{_count(len(given), 'input')}, not {wanted}")
        bound: dict[str, str] = {}
        for i, (p, kind) in enumerate(zip(self.spread(len(given)), given, strict=False)):
            if kind is None:
                if not p.optional:
                    raise Misfit(f"input {i} ({p.name}) is missing")
                continue
            got = kind.dtype.name
            wanted = p.kind if p.kind not in self.types else bound.setdefault(p.kind, got)
            if got != wanted:
                because = f", as {p.kind} is {wanted}" if p.kind in self.types else ""
                raise Misfit(f"input {i} ({p.name}) is {got}, not {wanted}{because}")
            allowed = self.types.get(p.kind)
            if allowed and got not in allowed:
                raise Misfit(f"input {i} ({p.name}) is {got}; {p.kind} is one of "
                             f"{', '.join(allowed)}")  # fmt: skip
        return bound

    def arguments(self, given: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
        """Attributes by name, defaults filled in, from (kind, value) pairs; raises Misfit."""
        unknown = sorted(set(given) - set(self.attrs))
        if unknown:
            raise Misfit(f"there is no attribute {', '.join(unknown)}")
        values: dict[str, Any] = {}
        for name, attr in self.attrs.items():
            if name in given:
                values[name] = _converted(name, attr, *given[name])
            elif attr.required:
                raise Misfit(f"attribute {name} is missing")
            else:
                values[name] = attr.default
        return values

    def refuse(self, where: str, reason: str, used_as: str) -> SignatureError:
        """The error that shows both signatures."""
        at = f"{where}: " if where else ""
        return SignatureError(f"{at}{reason}\n  declared: {self}\n  used:     {self.name}{used_as}")


def used(
    inputs: Sequence[TensorType | str | None],
    outputs: int | Sequence[object],
    attrs: Mapping[str, tuple[str, Any]],
) -> str:
    """The other signature: what a node or a call passes, behind the operator's name."""
    ins = ", ".join(_shown(kind) for kind in inputs)
    if isinstance(outputs, int):
        outs = _count(outputs, "output")
    else:
        outs = f"({', '.join(_shown(kind) for kind in outputs)})"
    return f"({ins}) -> {outs}" + _attributes(
        f"{n}: {k} = {_brief(v)}" for n, (k, v) in attrs.items()
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _shown(kind: object) -> str:
    if isinstance(kind, np.ndarray):
        return f"{kind.dtype} [{', '.join(map(str, kind.shape))}]"
    if isinstance(kind, TensorType):
        return f"{kind.dtype.name} [{', '.join(map(str, kind.dims))}]"
    return "absent" if kind is None else str(kind)


def _attributes(words: Iterable[str]) -> str:
    text = ", ".join(words)
    return f"; attributes {text}" if text else ""


def _declared(name: str, attr: Attr) -> str:
    return f"{name}: {attr.kind}" + ("" if attr.required else f" = {attr.default!r}")


def _parameters(name: str, words: Sequence[str], stem: str) -> tuple[Parameter, ...]:
    if isinstance(words, str):
        raise OptionError(f"{name}: inputs and outputs are lists of types, not {words!r}")
    found = []
    for i, word in enumerate(words):
        match = _PARAMETER.fullmatch(word.strip())
        if match is None or (match[1] and not match[1].isidentifier()):
            raise OptionError(
                f"{name}: parameter {word!r} is not 'TYPE', 'NAME: TYPE', with '?' where it may be "
                "left out, '...' where it stands for several"
            )
        kind = match[2] if match[2][0].isupper() else _element(name, match[2])
        label = match[1] or f"{stem}{i}"
        found.append(Parameter(label, kind, match[3] == "?", match[3] == "..."))
    return tuple(found)


def _element(name: str, word: Any) -> str:
    """An element type by Cuvil's name or numpy's; OptionError for another word."""
    if isinstance(word, str) and word in _DTYPES:
        return dtype(word).name
    try:
        kind = from_numpy(word).name
    except (KeyError, TypeError):
        kind = ""
    if kind not in _DTYPES:
        raise OptionError(
            f"{name}: {word!r} is no element type; types are {', '.join(sorted(_DTYPES))}, and "
            "type variables begin with a capital letter"
        )
    return kind


def attribute_of(op: str, name: str, value: Any) -> Attr:
    """How an attribute is declared: a type where it is required, else the default or an Attr."""
    if not name.isidentifier() or name.startswith("_"):
        raise OptionError(f"{op}: an attribute cannot be called {name!r}")
    if isinstance(value, Attr):
        if value.kind.removesuffix("s") not in _KINDS.values() and value.kind != "str":
            raise OptionError(f"{op}: attribute {name} cannot be of kind {value.kind}")
        return value
    if isinstance(value, type) and value in _KINDS:
        return Attr(_KINDS[value])
    kinds: tuple[Any, ...] = getattr(value, "__args__", ())
    if getattr(value, "__origin__", None) is list and len(kinds) == 1 and kinds[0] in _KINDS:
        return Attr(f"{_KINDS[kinds[0]]}s")
    kind = kind_of(value)
    if kind is None:
        raise OptionError(
            f"{op}: attribute {name} is declared as {value!r}: expected int, float, bool, str, "
            "list[...] of one of them, or a default of such a type"
        )
    return Attr(kind, tuple(value) if isinstance(value, list | tuple) else value)


def kind_of(value: Any) -> str | None:
    """The kind of attribute that a Python value is; None for what cannot be one."""
    if isinstance(value, list | tuple):
        kinds = {kind_of(v) for v in value}
        if kinds == {"int", "float"}:
            return "floats"
        (kind,) = kinds if len(kinds) == 1 else (None,)
        return f"{kind}s" if kind in _KINDS.values() else None
    return next((k for t, k in _KINDS.items() if type(value) is t), None)


def _converted(name: str, attr: Attr, kind: str | None, value: Any) -> Any:
    """The value as the declared kind has it: ONNX has no bool, and writes whole floats as ints."""
    value = tuple(value) if isinstance(value, list | tuple) else value
    widened = {("float", "int"), ("floats", "ints"), ("bool", "int"), ("bools", "ints")}
    empty = value == () and attr.kind.endswith("s")
    if kind != attr.kind and (attr.kind, kind) not in widened and not empty:
        raise Misfit(f"attribute {name} is {kind or type(value).__name__}, not {attr.kind}")
    convert = {"float": float, "bool": bool}.get(attr.kind.removesuffix("s"))
    if convert is None:
        return value
    return tuple(map(convert, value)) if attr.kind.endswith("s") else convert(value)
