"""What an expression is while a function is translated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cuvil.ir.names import Value
from cuvil.ir.py_types import INT, Array, List, Scalar, Tuple, Type

MISSING = object()


@dataclass(frozen=True)
class Static:
    """Something known while compiling that is no value: a module, a function, a type."""

    value: Any
    path: str = ""


@dataclass(frozen=True)
class Val:
    """A value. literal: what it is, where it is written in the source."""

    kind: Type
    ssa: Value
    literal: Any = MISSING

    @property
    def is_literal(self) -> bool:
        return self.literal is not MISSING


@dataclass(frozen=True)
class Range:
    """A `range` that was not yet walked."""

    start: Val
    stop: Val
    step: Val


@dataclass(frozen=True)
class Walk:
    """`enumerate`, `zip`, `reversed`, or items of a dict: what to walk, and how."""

    how: str
    parts: tuple[Any, ...]
    start: Val | None = None


@dataclass(frozen=True)
class Leaf:
    """An array whose elements an expression reads, or one value for all elements."""

    value: Val

    @property
    def kind(self) -> Scalar:
        kind = self.value.kind
        assert isinstance(kind, Array | Scalar)
        return kind.element if isinstance(kind, Array) else kind


@dataclass(frozen=True)
class Node:
    """An expression over elements, not yet computed. fn: of the table; kind: its element type."""

    fn: str
    args: tuple[Node | Leaf, ...]
    kind: Scalar
    literal: Any = field(default=MISSING)


Elements = Node | Leaf
Expression = Val | Static | Range | Walk | Node


def arrays_of(node: Elements) -> Iterator[Val]:
    """The arrays that an expression reads, each once per use."""
    if isinstance(node, Leaf):
        if isinstance(node.value.kind, Array):
            yield node.value
    else:
        for arg in node.args:
            yield from arrays_of(arg)


def rank_of(node: Elements) -> int:
    """The rank of an expression's result."""
    ranks = [a.kind.rank for a in arrays_of(node) if isinstance(a.kind, Array)]
    return max(ranks, default=0)


@dataclass(frozen=True)
class Binding:
    """A local variable at a place of the function. maybe: it may have no value yet."""

    kind: Type
    maybe: bool = False
    owned: bool = False


@dataclass(frozen=True)
class Failure:
    """What a site raises where the interpreter cannot: exception, message, place."""

    exception: str
    message: str
    line: int
    function: str
    file: str


def contains_list(kind: Type, wanted: Type) -> bool:
    """Whether values of a type hold, or are, containers of the wanted type."""
    if kind == wanted:
        return True
    if isinstance(kind, Tuple):
        return any(contains_list(t, wanted) for t in kind.items)
    parts = [getattr(kind, name, INT) for name in ("item", "key", "value")]
    return (isinstance(kind, List) and contains_list(kind.item, wanted)) or (
        not isinstance(kind, List) and any(contains_list(t, wanted) for t in parts if t != INT)
    )  # fmt: skip
