"""Symbolic dimensions: extents known when a model runs, as expressions of named symbols.

A static dimension is a plain `int`, any other a `SymDim`. Symbols are integers >= 0. Operators
follow Python (`//` and `%` floor), give an `int` whenever the result is constant, and take
divisors as non-zero. Expressions are kept canonical, so equality is structural:
`B*S + S*B == 2*B*S`, `(4*x + 8)//4 == x + 2`. An expression of more than 4096 terms raises
ValueError("dimension expression too large").
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import NoReturn, TypeAlias, TypeVar

from cuvil.ir.dims_bounds import (
    DEFAULT,
    Ranges,
    common_divisor,
    expand_mod,
    interval,
    never_negative,
)
from cuvil.ir.dims_divide import extreme, floordiv, mod
from cuvil.ir.dims_parse import parse_poly
from cuvil.ir.dims_poly import (
    Atom,
    Kind,
    Poly,
    add,
    const,
    const_value,
    mul,
    of_atom,
    scale,
    single_atom,
    sub,
    text,
)
from cuvil.ir.dims_scaled import ratio_of, scaled

T = TypeVar("T")
_Operation = Callable[[Poly, Poly], Poly]


class SymDim:
    """A dimension that is not constant. Immutable, hashable, without order (`<` raises).

    Made by `symbol`, `parse_dim` and operators, never directly.
    """

    __slots__ = ("_hash", "_poly")
    _hash: int
    _poly: Poly

    def __init__(self, poly: Poly) -> None:
        object.__setattr__(self, "_poly", poly)
        object.__setattr__(self, "_hash", hash(poly))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a SymDim cannot be changed")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymDim):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._poly == other._poly)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return text(self._poly)

    def __repr__(self) -> str:
        return f"SymDim({text(self._poly)!r})"

    def __reduce__(self) -> tuple[Callable[[str], Dim], tuple[str]]:
        return parse_dim, (text(self._poly),)

    def __neg__(self) -> Dim:
        return _dim(scale(self._poly, -1))

    def __pos__(self) -> Dim:
        return self

    def __add__(self, other: Dim) -> Dim:
        return _binary(add, self, other)

    def __radd__(self, other: Dim) -> Dim:
        return _binary(add, other, self)

    def __sub__(self, other: Dim) -> Dim:
        return _binary(sub, self, other)

    def __rsub__(self, other: Dim) -> Dim:
        return _binary(sub, other, self)

    def __mul__(self, other: Dim) -> Dim:
        return _binary(mul, self, other)

    def __rmul__(self, other: Dim) -> Dim:
        return _binary(mul, other, self)

    def __floordiv__(self, other: Dim) -> Dim:
        return _binary(floordiv, self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return _binary(floordiv, other, self)

    def __mod__(self, other: Dim) -> Dim:
        return _binary(mod, self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return _binary(mod, other, self)


Dim: TypeAlias = int | SymDim


def _dim(poly: Poly) -> Dim:
    value = const_value(poly)
    return SymDim(poly) if value is None else value


def _poly(dim: object) -> Poly | None:
    if isinstance(dim, SymDim):
        return dim._poly
    return const(int(dim)) if isinstance(dim, Integral) else None


def _checked(dim: object) -> Poly:
    poly = _poly(dim)
    if poly is None:
        raise TypeError(f"not a dimension: {dim!r}")
    return poly


def _binary(operation: _Operation, a: object, b: object) -> Dim:
    left, right = _poly(a), _poly(b)
    if left is None or right is None:
        unknown: Dim = NotImplemented  # an array of dimensions takes over from here
        return unknown
    return _dim(operation(left, right))


@functools.lru_cache(maxsize=4096)
def symbol(name: str) -> SymDim:
    """The dimension called `name`: any non-empty text; an integer >= 0 at run time."""
    if not name:
        raise ValueError("a symbolic dimension needs a name")
    return SymDim(of_atom(Atom("symbol", name=name)))


def parse_dim(source: str) -> Dim:
    """Read what `str(dim)` writes; `//` and `%` are accepted too. ValueError on a mistake."""
    return _dim(parse_poly(source))


def dim_min(*dims: Dim) -> Dim:
    """The smallest of one or more dimensions."""
    return _dim(extreme("min", map(_checked, dims)))


def dim_max(*dims: Dim) -> Dim:
    """The largest of one or more dimensions."""
    return _dim(extreme("max", map(_checked, dims)))


def ceil_div(a: Dim, b: Dim) -> Dim:
    """a / b rounded up; a symbolic b must be positive."""
    if isinstance(b, int) and b < 0:
        return ceil_div(-a, -b)
    return (a + b - 1) // b


def floor_scaled(dim: Dim, scale: float) -> Dim:
    """floor(dim * scale), the product rounded to a float32 first, as engines have it.

    scale: taken as the float32 nearest to it. ValueError where it is not positive or not finite.
    """
    if not 0 < scale < math.inf:
        raise ValueError(f"an extent cannot be scaled by {scale}")
    (near,) = struct.unpack("f", struct.pack("f", scale))
    numerator, denominator = near.as_integer_ratio()
    if denominator >> 62:  # no extent is so long that it leaves anything
        return 0
    return _dim(scaled(_checked(dim), numerator, denominator))


def literal(dim: Dim) -> int:
    """The number that a dimension is; AssertionError where it is symbolic."""
    assert not isinstance(dim, SymDim), f"{dim} is not known"
    return int(dim)


def product(dims: Iterable[Dim]) -> Dim:
    """Product of dimensions; 1 for none (the element count of a shape)."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def fold(
    dim: Dim,
    *,
    const: Callable[[int], T],
    symbol: Callable[[str], T],
    add: Callable[[T, T], T],
    mul: Callable[[T, T], T],
    floordiv: Callable[[T, T], T],
    mod: Callable[[T, T], T],
    minimum: Callable[[T, T], T],
    maximum: Callable[[T, T], T],
    scaled: Callable[[T, int, int], T],
) -> T:
    """Rebuild `dim` with the given callables; equal parts are built once.

    `floordiv` and `mod` round towards minus infinity. A difference comes as `mul` by const(-1).
    `scaled` gets the quotient of integers that the scale of `floor_scaled` is.
    """
    operations = {"floordiv": floordiv, "mod": mod, "min": minimum, "max": maximum}
    built: dict[Atom, T] = {}

    def atom_value(atom: Atom) -> T:
        if atom not in built:
            built[atom] = built_anew(atom)
        return built[atom]

    def built_anew(atom: Atom) -> T:
        if atom.kind == "symbol":
            return symbol(atom.name)
        if atom.kind == "scaled":
            return scaled(poly_value(atom.args[0]), *ratio_of(atom))
        return functools.reduce(operations[atom.kind], map(poly_value, atom.args))

    def term_value(term: tuple[tuple[Atom, ...], int]) -> T:
        factors = [atom_value(atom) for atom in term[0]]
        if term[1] != 1 or not factors:
            factors.append(const(term[1]))
        return functools.reduce(mul, factors)

    def poly_value(poly: Poly) -> T:
        return functools.reduce(add, map(term_value, poly)) if poly else const(0)

    return poly_value(_checked(dim))


def evaluate(dim: Dim, env: Mapping[str, int]) -> int:
    """Value of `dim`. KeyError for a symbol not in `env`. A divisor that comes out as 0 counts as
    1, which lies within what `bounds` says: an extent of 0 is no reason to fail."""
    value = _rebuild(dim, lambda name: int(env[name]))
    assert isinstance(value, int)  # no symbol is left
    return value


def substitute(dim: Dim, env: Mapping[str, Dim]) -> Dim:
    """`dim` with the symbols in `env` replaced, all at once; the others stay."""
    return _rebuild(dim, lambda name: env[name] if name in env else symbol(name))


def _rebuild(dim: Dim, leaf: Callable[[str], Dim]) -> Dim:
    rebuilt: Dim = fold(
        dim,
        const=_identity,
        symbol=leaf,
        add=lambda a, b: a + b,
        mul=lambda a, b: a * b,
        floordiv=lambda a, b: a // (1 if b == 0 else b),
        mod=lambda a, b: a % (1 if b == 0 else b),
        minimum=lambda a, b: dim_min(a, b),
        maximum=lambda a, b: dim_max(a, b),
        scaled=lambda a, n, d: _dim(scaled(_checked(a), n, d)),
    )
    return rebuilt


def _identity(value: int) -> Dim:
    return value


def symbols(dim: Dim) -> tuple[str, ...]:
    """Names of the symbols in `dim`, sorted, each once."""
    found: set[str] = set()
    pending = [_checked(dim)]
    while pending:
        for monomial, _ in pending.pop():
            for atom in monomial:
                pending.extend(atom.args)
                if atom.kind == "symbol":
                    found.add(atom.name)
    return tuple(sorted(found))


def largest_number(dim: Dim) -> int:
    """The greatest magnitude of a number in an expression."""
    pending, most = [_checked(dim)], 0
    while pending:
        for monomial, factor in pending.pop():
            most = max(most, abs(factor))
            pending.extend(arg for atom in monomial for arg in atom.args)
    return most


def bounds(dim: Dim, ranges: Ranges = DEFAULT) -> tuple[int | None, int | None]:
    """Inclusive (low, high) of `dim` by interval arithmetic; None is no bound.

    A symbol missing from `ranges` lies in (0, None). The bounds hold but need not be tight.
    """
    low, high = interval(_checked(dim), ranges)
    return None if isinstance(low, float) else low, None if isinstance(high, float) else high


def known_equal(a: Dim, b: Dim) -> bool:
    """True when a == b is proved for all symbol values; False says nothing."""
    return a == b or not expand_mod(sub(_checked(a), _checked(b)))


def known_ge(a: Dim, b: Dim, ranges: Ranges = DEFAULT) -> bool:
    """True when a >= b is proved for all symbol values in `ranges`; False says nothing."""
    left, right = _checked(a), _checked(b)
    if never_negative(sub(left, right), ranges):
        return True
    # Only the side that is a bare min or max is opened, so each step shrinks the problem.
    above, below = _operands(left, "max"), _operands(right, "min")
    floors, ceilings = _operands(left, "min"), _operands(right, "max")
    return (
        any(known_ge(x, b, ranges) for x in above)
        or any(known_ge(a, x, ranges) for x in below)
        or (bool(floors) and all(known_ge(x, b, ranges) for x in floors))
        or (bool(ceilings) and all(known_ge(a, x, ranges) for x in ceilings))
    )


def _operands(poly: Poly, kind: Kind) -> list[Dim]:
    atom = single_atom(poly)
    return [_dim(arg) for arg in atom.args] if atom is not None and atom.kind == kind else []


def divisible_by(dim: Dim, n: int) -> bool:
    """True when n (> 0) divides `dim` for all symbol values, proved; False says nothing."""
    if n <= 0:
        raise ValueError(f"divisor {n} is not positive")
    return math.gcd(common_divisor(_checked(dim)), n) == n


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """The numpy rule for one axis; ValueError for two different static extents.

    A static extent other than 1 decides over a symbolic one. Of two different symbolic extents
    `a` is taken: that they agree at run time is for the caller to check.
    """
    if a == b or _is_one(b):
        return a
    if _is_one(a) or (isinstance(a, SymDim) and not isinstance(b, SymDim)):
        return b
    if not isinstance(a, SymDim) and not isinstance(b, SymDim):
        raise ValueError(f"dimensions {a} and {b} do not broadcast")
    return a


def _is_one(dim: Dim) -> bool:
    return not isinstance(dim, SymDim) and dim == 1
