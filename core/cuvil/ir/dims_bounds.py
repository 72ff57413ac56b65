"""Interval arithmetic and proofs over the polynomials of `dims_poly`."""

import math
from collections.abc import Mapping

from cuvil.ir.dims_poly import Atom, Poly, add, const, const_value, mul, of_atom, scale, sub
from cuvil.ir.dims_scaled import ratio_of, scaled_number

Ranges = Mapping[str, tuple[int, int | None]]
Bound = int | float  # an int, or an infinity
Interval = tuple[Bound, Bound]

DEFAULT: Ranges = {}
_INF = math.inf
_ANY: Interval = (-_INF, _INF)
_FUEL = 16  # relaxation steps of one proof


def interval(poly: Poly, ranges: Ranges = DEFAULT) -> Interval:
    """Bounds of `poly`, both inclusive, for symbols in `ranges` (default 0 and up)."""
    low: Bound = 0
    high: Bound = 0
    for monomial, factor in poly:
        term: Interval = (factor, factor)
        for atom in monomial:
            term = _product(term, _atom_interval(atom, ranges))
        low, high = low + term[0], high + term[1]
    return low, high


def _times(a: Bound, b: Bound) -> Bound:
    if a == 0 or b == 0:
        return 0
    if isinstance(a, float) or isinstance(b, float):  # an int may be too large for a float
        return _INF if (a > 0) == (b > 0) else -_INF
    return a * b


def _product(a: Interval, b: Interval) -> Interval:
    corners = [_times(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _atom_interval(atom: Atom, ranges: Ranges) -> Interval:
    if atom.kind == "symbol":
        low, high = ranges.get(atom.name, (0, None))
        return low, _INF if high is None else high
    parts = [interval(arg, ranges) for arg in atom.args]
    if atom.kind in ("min", "max"):
        pick = min if atom.kind == "min" else max
        return pick(low for low, _ in parts), pick(high for _, high in parts)
    if atom.kind == "scaled":
        return _scaled(parts[0], *ratio_of(atom))
    num, den = parts
    if den[0] < 0:
        return _ANY
    den = (max(den[0], 1), max(den[1], 1))  # a divisor is not zero
    return _floordiv(num, den) if atom.kind == "floordiv" else _mod(num, den)


def _floor(a: Bound, b: Bound) -> Bound:
    """a // b for b > 0, where either may be infinite."""
    if isinstance(a, float):
        return a
    if isinstance(b, float):
        return 0 if a >= 0 else -1
    return a // b


def _floordiv(num: Interval, den: Interval) -> Interval:
    return min(_floor(num[0], d) for d in den), max(_floor(num[1], d) for d in den)


def _scaled(of: Interval, num: int, den: int) -> Interval:
    low, high = (end if isinstance(end, float) else scaled_number(end, num, den) for end in of)
    return low, high


def _mod(num: Interval, den: Interval) -> Interval:
    if num[0] >= 0 and num[1] < den[0]:
        return num
    return 0, min(den[1] - 1, num[1]) if num[0] >= 0 else den[1] - 1


def expand_mod(poly: Poly) -> Poly:
    """`poly` with each top-level p mod d written as p - d * (p floordiv d)."""
    out: Poly = ()
    for monomial, factor in poly:
        term = const(factor)
        for atom in monomial:
            term = mul(term, _without_mod(atom))
        out = add(out, term)
    return out


def _without_mod(atom: Atom) -> Poly:
    if atom.kind != "mod":
        return of_atom(atom)
    num, den = atom.args
    return sub(num, mul(den, of_atom(Atom("floordiv", atom.args))))


def never_negative(poly: Poly, ranges: Ranges = DEFAULT) -> bool:
    """True when poly >= 0 is proved; False says nothing."""
    return _proved(poly, 1, ranges, _FUEL) or _proved(expand_mod(poly), 1, ranges, _FUEL)


def _proved(poly: Poly, unit: int, ranges: Ranges, fuel: int) -> bool:
    """Prove poly / unit > -1, which for an integer means >= 0.

    floor(p / n) lies in [(p - n + 1) / n, p / n]; putting the end that lowers the value in its
    place (and scaling everything by n) makes terms cancel: x - x//2 becomes 2*x - x.
    """
    if interval(poly, ranges)[0] > -unit:
        return True
    for monomial, factor in poly if fuel else ():
        if len(monomial) == 1 and monomial[0].kind == "floordiv":
            num, den = monomial[0].args
            n = const_value(den)
            if n is not None:
                rest = scale(sub(poly, ((monomial, factor),)), n)
                end = num if factor < 0 else sub(num, const(n - 1))
                return _proved(add(rest, scale(end, factor)), unit * n, ranges, fuel - 1)
    return False


def common_divisor(poly: Poly) -> int:
    """The largest integer proved to divide `poly` for all symbol values; 0 for the constant 0."""
    return math.gcd(*(f * math.prod(map(_atom_divisor, monomial)) for monomial, f in poly))


def _atom_divisor(atom: Atom) -> int:
    if atom.kind in ("symbol", "floordiv", "scaled"):
        return 1
    return math.gcd(*map(common_divisor, atom.args))
