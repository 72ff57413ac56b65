"""Types of the `py` dialect: what values of a compiled Python function are.

`code` is the text by which the runtime knows a type, and the types' text in the IR too; see
runtime_c/python/src/native_types.h for what the values look like in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

DTYPES = "?bBhHiIlLfd"  # numpy's characters of the element types that are taken


@dataclass(frozen=True)
class Type:
    """A type; its subclasses and INT, FLOAT, BOOL, STR, NONE, NUMBER are all there are."""

    @property
    def code(self) -> str:
        """The type's text."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plain(Type):
    """A type without parameters."""

    letter: str
    name: str

    @property
    def code(self) -> str:
        return self.letter

    def __str__(self) -> str:
        return self.name


INT: Type = Plain("i", "int")
FLOAT: Type = Plain("f", "float")
BOOL: Type = Plain("b", "bool")
STR: Type = Plain("s", "str")
NONE: Type = Plain("n", "None")
NUMBER: Type = Plain("N", "int | float")
"""An int or a float, which only a run tells; ints in it are at most 2**53 in size."""


@dataclass(frozen=True)
class Scalar(Type):
    """A numpy scalar."""

    dtype: str

    @property
    def code(self) -> str:
        return "u" + self.dtype

    def __str__(self) -> str:
        return f"numpy.{np.dtype(self.dtype).name}"


@dataclass(frozen=True)
class Element(Scalar):
    """A tensor of rank 0 of torch's: an element of a tensor, or computed from one.

    fresh: made just now; others may be views of tensors, or have a name already.
    """

    fresh: bool = False

    @property
    def code(self) -> str:
        return "U" + self.dtype

    def __str__(self) -> str:
        return f"Tensor[{np.dtype(self.dtype).name}, rank 0]"


@dataclass(frozen=True)
class Tuple(Type):
    """A tuple of known length."""

    items: tuple[Type, ...]

    @property
    def code(self) -> str:
        return f"({''.join(t.code for t in self.items)})"

    def __str__(self) -> str:
        return f"tuple[{', '.join(map(str, self.items)) or '()'}]"


@dataclass(frozen=True)
class Unknown(Type):
    """What an empty list holds before anything shows it. site: the expression that made it."""

    site: object

    @property
    def code(self) -> str:
        return "i"

    def __str__(self) -> str:
        return "?"


@dataclass(frozen=True)
class List(Type):
    """A list of items of one type."""

    item: Type

    @property
    def code(self) -> str:
        return "[" + self.item.code

    def __str__(self) -> str:
        return f"list[{self.item}]"


@dataclass(frozen=True)
class Set(Type):
    """A set; it is made in compiled code and is not iterated, since its order is Python's own."""

    item: Type

    @property
    def code(self) -> str:
        return "<" + self.item.code

    def __str__(self) -> str:
        return f"set[{self.item}]"


@dataclass(frozen=True)
class Dict(Type):
    """A dict of keys of one type and values of one type."""

    key: Type
    value: Type

    @property
    def code(self) -> str:
        return "{" + self.key.code + self.value.code

    def __str__(self) -> str:
        return f"dict[{self.key}, {self.value}]"


@dataclass(frozen=True)
class Array(Type):
    """A numpy array. contiguous: in C order. fresh: made by the function, seen by nobody else."""

    dtype: str
    rank: int
    contiguous: bool = True
    writable: bool = True
    fresh: bool = False

    @property
    def code(self) -> str:
        flags = ("C" if self.contiguous else "A") + ("w" if self.writable else "r")
        return f"a{self.dtype}{self.rank}{flags}"

    @property
    def element(self) -> Scalar:
        """The type of one element."""
        return Scalar(self.dtype)

    def __str__(self) -> str:
        return f"ndarray[{np.dtype(self.dtype).name}, rank {self.rank}]"


@dataclass(frozen=True)
class Tensor(Type):
    """A tensor of torch's on the cpu, without gradients; it lies in memory as the array."""

    array: Array

    @property
    def code(self) -> str:
        return "T" + self.array.code[1:]

    def __str__(self) -> str:
        return f"Tensor[{np.dtype(self.array.dtype).name}, rank {self.array.rank}]"


@dataclass(frozen=True)
class Size(Tuple):
    """The shape of a tensor."""


@dataclass(frozen=True)
class Union(Type):
    """What a function returns that has results of several types."""

    items: tuple[Type, ...]

    @property
    def code(self) -> str:
        return f"|{''.join(t.code for t in self.items)};"

    def __str__(self) -> str:
        return " | ".join(map(str, self.items))


_PLAIN = {t.code: t for t in (INT, FLOAT, BOOL, STR, NONE, NUMBER)}


def parse(text: str) -> Type:
    """The type of a text. Raises ValueError."""
    found, rest = _parse(text)
    if rest:
        raise ValueError(f"'{rest}' behind the type {found}")
    return found


def _parse(text: str) -> tuple[Type, str]:
    head, rest = text[:1], text[1:]
    if head in _PLAIN:
        return _PLAIN[head], rest
    if head in ("(", "|"):
        items, rest = _parse_until(rest, ")" if head == "(" else ";")
        return (Tuple if head == "(" else Union)(items), rest
    if head == "{":
        key, rest = _parse(rest)
        value, rest = _parse(rest)
        return Dict(key, value), rest
    if head in ("[", "<"):
        item, rest = _parse(rest)
        return (List if head == "[" else Set)(item), rest
    if head in ("u", "U") and rest[:1] in DTYPES:
        return (Scalar if head == "u" else Element)(rest[0]), rest[1:]
    if head in ("a", "T") and len(rest) >= 4 and rest[0] in DTYPES:
        array = Array(rest[0], int(rest[1]), rest[2] == "C", rest[3] == "w")
        return array if head == "a" else Tensor(array), rest[4:]
    raise ValueError(f"no type begins with '{text}'")


def _parse_until(text: str, end: str) -> tuple[tuple[Type, ...], str]:
    items: list[Type] = []
    while text[:1] != end:
        item, text = _parse(text)
        items.append(item)
    return tuple(items), text[1:]


def is_number(kind: Type) -> bool:
    """Whether arithmetic takes it: bool, int, float, either, or a numpy scalar."""
    return kind in (INT, FLOAT, BOOL, NUMBER) or isinstance(kind, Scalar)


def numeric_join(kinds: Iterable[Type]) -> Type | None:
    """The type that holds numbers of these types, None where something is no number.

    Python's own numbers keep their type at run time; beside a numpy scalar they become one.
    """
    found = {replace(t, fresh=False) if isinstance(t, Element) else t for t in kinds}
    if len(found) == 1:
        return found.pop()
    if not all(map(is_number, found)):
        return None
    if any(isinstance(t, Element) for t in found):
        return _element_join(found)
    scalars = [np.dtype(t.dtype) for t in found if isinstance(t, Scalar)]
    if scalars:
        weak = [_WEAK[t] for t in found if not isinstance(t, Scalar)]
        return Scalar(dtype_char(np.result_type(*scalars, *weak)))
    return None if BOOL in found else NUMBER


_WEAK: dict[Type, float] = {INT: 0, FLOAT: 0.0, NUMBER: 0.0, BOOL: False}


def _element_join(kinds: set[Type]) -> Element | None:
    """By torch's rules: a Python number, or a tensor, changes the type only where it is of a higher
    category, and then to the default type of that. None beside a scalar of numpy's."""
    dtypes: dict[int, list[str]] = {}
    for kind in kinds:
        if isinstance(kind, Element):
            dtypes.setdefault(category(kind), []).append(kind.dtype)
        elif isinstance(kind, Scalar):
            return None
        else:
            dtypes.setdefault(category(kind), [])
    highest = max(dtypes)
    found = dtypes[highest]
    return Element(dtype_char(np.result_type(*found)) if found else "?lf"[highest])


def category(kind: Type) -> int:
    """0 of bools, 1 of ints, 2 of floats."""
    if isinstance(kind, Scalar):
        return {"b": 0, "f": 2}.get(np.dtype(kind.dtype).kind, 1)
    return {BOOL: 0, INT: 1}.get(kind, 2)


def dtype_char(dtype: np.dtype) -> str:
    """numpy's character of a dtype, `l` and `L` for all integers of 64 bits."""
    return {"q": "l", "Q": "L"}.get(dtype.char, dtype.char)


def members(kind: Type) -> list[Type]:
    """What a value is ordered and hashed by: itself, or the members of a tuple, in order."""
    if isinstance(kind, Tuple):
        return [member for item in kind.items for member in members(item)]
    return [kind]


def can_order(kind: Type) -> bool:
    """Whether compiled code sorts values of the type."""
    return all(t in (INT, BOOL, FLOAT, STR) for t in members(kind))


def can_hash(kind: Type) -> bool:
    """Whether compiled code takes values of the type as keys."""
    return all(t in (INT, BOOL, STR) for t in members(kind))
