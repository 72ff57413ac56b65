"""The nodes of patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Attrs = tuple[tuple[str, Any], ...]


class Expr:
    """A pattern's node: operators on it make nodes, as on arrays.

    A factor that is a literal also matches a division by its reciprocal, and the other way round;
    a literal that is subtracted also matches one that is added.
    """

    def __add__(self, other: Any) -> Expr:
        return Node("add", (self, lift(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Expr:
        right = lift(other)
        plain = Node("sub", (self, right))
        if isinstance(right, Literal):
            return Either((plain, Node("add", (self, Literal(-right.value)))))
        return plain

    def __rsub__(self, other: Any) -> Expr:
        return Node("sub", (lift(other), self))

    def __mul__(self, other: Any) -> Expr:
        right = lift(other)
        plain = Node("mul", (self, right))
        if isinstance(right, Literal):
            return Either((plain, Node("div", (self, Literal(1 / right.value)))))
        return plain

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expr:
        right = lift(other)
        plain = Node("div", (self, right))
        if isinstance(right, Literal):
            return Either((plain, Node("mul", (self, Literal(1 / right.value)))))
        return plain

    def __rtruediv__(self, other: Any) -> Expr:
        plain = Node("div", (lift(other), self))
        return Either((plain, Node("reciprocal", (self,)))) if other == 1 else plain

    def __neg__(self) -> Expr:
        return Node("neg", (self,))


@dataclass(frozen=True)
class Capture(Expr):
    """A named place: 'value' takes any value, 'number' and 'constant' as `pattern` says."""

    name: str
    kind: str = "value"


@dataclass(frozen=True)
class Literal(Expr):
    """A constant all of whose elements are this number, within rounding of its type."""

    value: float


@dataclass(frozen=True)
class Node(Expr):
    """A primitive on operands. Attributes that are not named may be anything."""

    name: str
    operands: tuple[Expr, ...]
    attrs: Attrs = ()


@dataclass(frozen=True)
class Either(Expr):
    """The first of several forms that matches."""

    forms: tuple[Expr, ...]


@dataclass(frozen=True)
class Chain(Expr):
    """Operands of a chain of `name` (mul or add), in any order and association."""

    name: str
    operands: tuple[Expr, ...]


Form = Node | Either | Chain


def lift(value: Any) -> Expr:
    """A number as a literal, a node as it is."""
    return value if isinstance(value, Expr) else Literal(float(value))


def root_names(expr: Expr) -> set[str]:
    """The primitives at which a match of this node can stand."""
    if isinstance(expr, Either):
        return set().union(*map(root_names, expr.forms))
    if isinstance(expr, Chain):
        return {"mul", "div"} if expr.name == "mul" else {"add", "sub"}
    if isinstance(expr, Node):
        return {expr.name}
    raise ValueError("a pattern must be an operation")
