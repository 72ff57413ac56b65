"""Reading the text form of dimensions: `(B*S + 3) floordiv 4`, `min("?0", 8)`."""

import json
import re
from collections.abc import Callable

from cuvil.ir.dims_divide import extreme, floordiv, mod
from cuvil.ir.dims_poly import (
    CALLS,
    RESERVED,
    Atom,
    Poly,
    const,
    const_value,
    mul,
    of_atom,
    scale,
    total,
)
from cuvil.ir.dims_scaled import scaled

MAX_NESTING = 150  # parentheses and signs; a canonical text needs at most two per level of atoms
_TOKEN = re.compile(r"""\s*(?:(\d+)|([A-Za-z_]\w*)|("(?:[^"\\]|\\.)*")|(//|[-+*%(),]))""", re.A)
_OPERATORS: dict[str, Callable[[Poly, Poly], Poly]] = {
    "*": mul,
    "floordiv": floordiv,
    "//": floordiv,
    "mod": mod,
    "%": mod,
}


def parse_poly(text: str) -> Poly:
    """The polynomial written as `text`; ValueError names the place of a mistake."""
    reader = _Reader(text)
    poly = reader.sum()
    if reader.token:
        raise reader.error("an operator")
    return poly


class _Reader:
    """Recursive descent over the tokens of one text; `token` is the next one, "" at the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.end = 0
        self.nesting = 0
        self.token = ""
        self.next()

    def next(self) -> str:
        """Step over the current token and return it."""
        taken = self.token
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            self.place = self.end
            self.token = ""
            if self.text[self.end :].strip():
                raise self.error("a number, a name or an operator")
        else:
            self.token = match.group().lstrip()
            self.end = match.end()
            self.place = self.end - len(self.token)
        return taken

    def error(self, wanted: str) -> ValueError:
        """The error for a text that lacks `wanted` here."""
        return ValueError(f"dimension {self.text!r}: expected {wanted} at column {self.place + 1}")

    def expect(self, token: str) -> None:
        """Step over `token`, which must be next."""
        if self.token != token:
            raise self.error(f"{token!r}")
        self.next()

    def sum(self) -> Poly:
        terms = [self.term()]
        while self.token in ("+", "-"):
            sign = 1 if self.next() == "+" else -1
            terms.append(scale(self.term(), sign))
        return total(terms)

    def term(self) -> Poly:
        value = self.factor()
        while self.token in _OPERATORS:
            operator = _OPERATORS[self.next()]
            value = operator(value, self.factor())
        return value

    def factor(self) -> Poly:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise ValueError("dimension expression too large")
        value = self.primary()
        self.nesting -= 1
        return value

    def primary(self) -> Poly:
        token = self.token
        if token == "-":
            self.next()
            return scale(self.factor(), -1)
        if token == "(":
            self.next()
            value = self.sum()
            self.expect(")")
            return value
        if token in CALLS:
            self.next()
            return self.scaled() if token == "scaled" else self.extreme(token)
        if token.isdigit():
            return const(int(self.next()))
        return of_atom(Atom("symbol", name=self.name()))

    def extreme(self, kind: str) -> Poly:
        return extreme("min" if kind == "min" else "max", self.arguments())

    def scaled(self) -> Poly:
        found = self.arguments()
        numbers = [n for n in map(const_value, found[1:]) if n is not None]
        if len(found) != 3 or len(numbers) != 2:
            raise self.error("an extent and two numbers before this")
        return scaled(found[0], *numbers)

    def name(self) -> str:
        """A bare or quoted symbol name."""
        token = self.token
        if token.startswith('"') and len(token) > 2:
            try:
                name: str = json.loads(token, strict=False)
            except ValueError:
                raise self.error("a well-formed quoted name") from None
            self.next()
            return name
        if not token.isidentifier() or token in RESERVED:
            raise self.error("a number, a name or '('")
        return self.next()

    def arguments(self) -> list[Poly]:
        self.expect("(")
        found = [self.sum()]
        while self.token == ",":
            self.next()
            found.append(self.sum())
        self.expect(")")
        return found
