"""Integer polynomials over atoms: the canonical form behind `cuvil.ir.dims.SymDim`.

A `Poly` is a sorted tuple of (monomial, coefficient); a monomial is a sorted tuple of atoms with
repetition, so B*B*S is (B, B, S). The order is graded lexicographic, leading term first. Equal
values of this form compare and hash equal. The constant 0 is the empty tuple.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

Kind = Literal["symbol", "floordiv", "mod", "min", "max", "scaled"]
Monomial: TypeAlias = "tuple[Atom, ...]"
Poly: TypeAlias = "tuple[tuple[Monomial, int], ...]"

MAX_TERMS = 4096
MAX_DEPTH = 64  # nesting of atoms; keeps every recursion far from Python's own limit
ZERO: Poly = ()
CALLS = ("min", "max", "scaled")  # atoms that are written as calls
RESERVED = frozenset({*CALLS, "mod", "floordiv"})
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Atom:
    """A symbol, or a floordiv, mod, min, max or scaled of polynomials that does not simplify.

    `key` is the atom's text; it identifies the atom, and equality, hash and order use it.
    `size` counts the terms inside, `depth` the nesting (a symbol has 1 of each).
    """

    __slots__ = ("args", "depth", "key", "kind", "name", "size")

    def __init__(self, kind: Kind, args: tuple[Poly, ...] = (), name: str = "") -> None:
        self.kind = kind
        self.args = args
        self.name = name
        self.size = 1 + sum(size_of(arg) for arg in args)
        self.depth = 1 + max((depth_of(arg) for arg in args), default=0)
        if self.size > MAX_TERMS or self.depth > MAX_DEPTH:
            raise ValueError("dimension expression too large")
        self.key = _atom_text(self)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def size_of(poly: Poly) -> int:
    """Terms in `poly`, where every factor counts with the terms inside it."""
    return sum(sum(atom.size for atom in monomial) or 1 for monomial, _ in poly)


def depth_of(poly: Poly) -> int:
    """Nesting depth of the atoms of `poly`; 0 for a constant."""
    return max((atom.depth for monomial, _ in poly for atom in monomial), default=0)


def monomial_order(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    """Sort key that puts the leading monomial first; compatible with multiplication."""
    return (-len(monomial), tuple(atom.key for atom in monomial))


def make(terms: dict[Monomial, int]) -> Poly:
    """Canonical form of a sum of terms; ValueError when it is too large."""
    kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
    if len(kept) > 1:
        kept.sort(key=lambda term: monomial_order(term[0]))
    poly = tuple(kept)
    if size_of(poly) > MAX_TERMS:
        raise ValueError("dimension expression too large")
    return poly


def const(value: int) -> Poly:
    """The constant polynomial `value`."""
    return (((), value),) if value else ZERO


def of_atom(atom: Atom) -> Poly:
    """The polynomial that is just `atom`."""
    return (((atom,), 1),)


def const_value(poly: Poly) -> int | None:
    """The value of a constant polynomial, None for any other."""
    if not poly:
        return 0
    return poly[0][1] if not poly[0][0] else None


def single_atom(poly: Poly) -> Atom | None:
    """The atom when `poly` is one atom with coefficient 1, else None."""
    if len(poly) == 1 and poly[0][1] == 1 and len(poly[0][0]) == 1:
        return poly[0][0][0]
    return None


def total(polys: Iterable[Poly]) -> Poly:
    """Sum of many polynomials, sorted once."""
    terms: dict[Monomial, int] = {}
    for poly in polys:
        for monomial, factor in poly:
            terms[monomial] = terms.get(monomial, 0) + factor
    return make(terms)


def add(a: Poly, b: Poly) -> Poly:
    """a + b"""
    return total((a, b))


def scale(poly: Poly, factor: int) -> Poly:
    """poly * factor"""
    return tuple((monomial, c * factor) for monomial, c in poly) if factor else ZERO


def sub(a: Poly, b: Poly) -> Poly:
    """a - b"""
    return total((a, scale(b, -1)))


def mul(a: Poly, b: Poly) -> Poly:
    """a * b; ValueError as soon as the product has too many terms."""
    terms: dict[Monomial, int] = {}
    for left, x in a:
        for right, y in b:
            if len(left) + len(right) > MAX_TERMS or len(terms) > MAX_TERMS:
                raise ValueError("dimension expression too large")
            monomial = times(left, right)
            terms[monomial] = terms.get(monomial, 0) + x * y
    return make(terms)


def times(a: Monomial, b: Monomial) -> Monomial:
    """Product of two monomials."""
    if not a or not b:
        return a or b
    return tuple(sorted(a + b, key=lambda atom: atom.key))


def over(a: Monomial, b: Monomial) -> Monomial | None:
    """a / b, or None when b does not divide a."""
    rest = list(a)
    for atom in b:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def quote(name: str) -> str:
    """Text of a symbol: bare for an identifier, a JSON string for any other name."""
    if _IDENTIFIER.match(name) and name not in RESERVED:
        return name
    return json.dumps(name)


def text(poly: Poly) -> str:
    """`B*S - 2*(S floordiv 2) + 1`; `parse_poly` reads it back."""
    out = ""
    for monomial, factor in poly:
        sign = "-" if factor < 0 else "+"
        body = _term_text(monomial, abs(factor), alone=factor == 1 or bool(out and factor == -1))
        out = f"{out} {sign} {body}" if out else body if factor > 0 else "-" + body
    return out or "0"


def _term_text(monomial: Monomial, factor: int, alone: bool) -> str:
    """Text of |factor| * monomial; `alone` lets one floordiv or mod go without parentheses."""
    if len(monomial) == 1 and alone:
        return monomial[0].key
    parts = [f"({a.key})" if a.kind in ("floordiv", "mod") else a.key for a in monomial]
    if factor != 1 or not parts:
        parts.insert(0, str(factor))
    return "*".join(parts)


def _atom_text(atom: Atom) -> str:
    if atom.kind == "symbol":
        return quote(atom.name)
    if atom.kind in CALLS:
        return f"{atom.kind}({', '.join(text(arg) for arg in atom.args)})"
    left, right = (_operand_text(arg) for arg in atom.args)
    return f"{left} {atom.kind} {right}"


def _operand_text(poly: Poly) -> str:
    atom = single_atom(poly)
    value = const_value(poly)
    bare = value >= 0 if value is not None else atom and atom.kind in ("symbol", *CALLS)
    return text(poly) if bare else f"({text(poly)})"
