"""Simplifying floor division, modulo, minimum and maximum of polynomials.

Python's floor semantics. A divisor is taken as non-zero, so common factors cancel; the constant
divisor 0 raises ZeroDivisionError. Each function is a fixed point: applied to the arguments of
an atom it made, it makes the same atom (the text form relies on that).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from cuvil.ir.dims_bounds import interval, never_negative
from cuvil.ir.dims_poly import (
    ZERO,
    Atom,
    Kind,
    Monomial,
    Poly,
    add,
    const,
    const_value,
    make,
    monomial_order,
    mul,
    of_atom,
    over,
    scale,
    single_atom,
    sub,
    times,
    total,
)

_DIVISION_STEPS = 256
_COMPARED = 16  # min and max of more operands than this only drop duplicates and constants


def floordiv(num: Poly, den: Poly) -> Poly:
    """num // den"""
    if _negative(den):
        return floordiv(scale(num, -1), scale(den, -1))
    quotient, rest = _split(num, den)
    n = const_value(den)
    value = _floordiv_const(rest, n) if n is not None else _floordiv_symbolic(rest, den)
    return add(quotient, value)


def mod(num: Poly, den: Poly) -> Poly:
    """num % den"""
    if _negative(den):
        return scale(mod(scale(num, -1), scale(den, -1)), -1)
    _, rest = _split(num, den)
    n = const_value(den)
    return _mod_const(rest, n) if n is not None else _mod_symbolic(rest, den)


def extreme(kind: Kind, operands: Iterable[Poly]) -> Poly:
    """Minimum or maximum (`kind` "min" or "max") of one or more polynomials."""
    found = _flat(kind, operands)
    if not found:
        raise ValueError(f"{kind} of no dimensions")
    if len(found) <= _COMPARED:
        found = _undominated(kind, found)
    if len(found) == 1:
        return found[0]
    return of_atom(Atom(kind, tuple(found)))


def _negative(den: Poly) -> bool:
    if not den:
        raise ZeroDivisionError("dimension divided by zero")
    return den[0][1] < 0


def _split(num: Poly, den: Poly) -> tuple[Poly, Poly]:
    """(q, r) with num == q * den + r; r is what division by den cannot take out."""
    n = const_value(den)
    if n is not None:
        return (
            make({monomial: c // n for monomial, c in num}),
            make({monomial: c % n for monomial, c in num}),
        )
    if len(den) > 1:
        quotient = _exact(num, den)
        return (ZERO, num) if quotient is None else (quotient, ZERO)
    quotient = make(dict(filter(None, (_term_over(term, den[0]) for term in num))))
    return quotient, sub(num, mul(quotient, den))


def _term_over(a: tuple[Monomial, int], b: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    """a / b for two terms, or None when that is no term with an integer coefficient."""
    monomial = over(a[0], b[0])
    return None if monomial is None or a[1] % b[1] else (monomial, a[1] // b[1])


def _exact(num: Poly, den: Poly) -> Poly | None:
    """num / den by long division on leading terms, or None when a remainder is left."""
    rest = dict(num)
    quotient: dict[Monomial, int] = {}
    for _ in range(_DIVISION_STEPS):
        if not rest:
            return make(quotient)
        lead = min(rest, key=monomial_order)
        term = _term_over((lead, rest[lead]), den[0])
        if term is None:
            return None
        quotient[term[0]] = term[1]
        for monomial, factor in den:
            key = times(monomial, term[0])
            rest[key] = rest.get(key, 0) - factor * term[1]
            if not rest[key]:
                del rest[key]
    return None


def _divide_terms(poly: Poly, factor: int, monomial: Monomial = ()) -> Poly:
    """`poly` divided by a term known to divide it."""
    return make({over(m, monomial) or (): c // factor for m, c in poly})


def _parts(poly: Poly) -> tuple[Poly, int]:
    """(terms with symbols, constant term)"""
    if poly and not poly[-1][0]:
        return poly[:-1], poly[-1][1]
    return poly, 0


def _floordiv_const(num: Poly, n: int) -> Poly:
    """num // n for n > 0 and coefficients of num in [0, n)."""
    if const_value(num) is not None:
        return ZERO
    terms, offset = _parts(num)
    g = math.gcd(n, *(c for _, c in terms))
    if g > 1:
        return floordiv(add(_divide_terms(terms, g), const(offset // g)), const(n // g))
    inner = single_atom(terms)
    if inner is not None and inner.kind == "floordiv":
        m = const_value(inner.args[1])
        if m is not None:
            return floordiv(add(inner.args[0], const(offset * m)), const(n * m))
    constant = _constant_quotient(num, n)
    return of_atom(Atom("floordiv", (num, const(n)))) if constant is None else const(constant)


def _constant_quotient(num: Poly, n: int) -> int | None:
    """num // n when the bounds of num leave one value."""
    low, high = interval(num)
    if isinstance(low, float) or isinstance(high, float) or low // n != high // n:
        return None
    return low // n


def _mod_const(num: Poly, n: int) -> Poly:
    """num % n for n > 0 and coefficients of num in [0, n)."""
    if const_value(num) is not None:
        return num
    terms, offset = _parts(num)
    g = math.gcd(n, *(c for _, c in terms))
    if g > 1:
        reduced = mod(add(_divide_terms(terms, g), const(offset // g)), const(n // g))
        return add(scale(reduced, g), const(offset % g))
    bare = total(_modulo_free(term, n) for term in num)
    if bare != num:
        return mod(bare, const(n))
    constant = _constant_quotient(num, n)
    return (
        of_atom(Atom("mod", (num, const(n)))) if constant is None else sub(num, const(constant * n))
    )


def _modulo_free(term: tuple[Monomial, int], n: int) -> Poly:
    """A term with the same value modulo n: c * (p mod k) becomes c * p where n divides k."""
    monomial, factor = term
    if len(monomial) == 1 and monomial[0].kind == "mod":
        num, den = monomial[0].args
        k = const_value(den)
        if k is not None and k % n == 0:
            return scale(num, factor)
    return (term,)


def _content(num: Poly, den: Poly) -> tuple[Monomial, int]:
    """The largest term that divides every term of both."""
    shared = Counter(den[0][0])
    for monomial, _ in num + den:
        shared &= Counter(monomial)
    monomial = tuple(sorted(shared.elements(), key=lambda atom: atom.key))
    return monomial, math.gcd(*(c for _, c in num + den))


def _floordiv_symbolic(num: Poly, den: Poly) -> Poly:
    """num // den for a den with symbols, its multiples already taken out of num."""
    if not num:
        return ZERO
    monomial, g = _content(num, den)
    if monomial or g > 1:
        return floordiv(_divide_terms(num, g, monomial), _divide_terms(den, g, monomial))
    if _below(num, den):
        return ZERO
    return of_atom(Atom("floordiv", (num, den)))


def _mod_symbolic(num: Poly, den: Poly) -> Poly:
    """num % den for a den with symbols, its multiples already taken out of num."""
    if not num:
        return ZERO
    monomial, g = _content(num, den)
    if monomial or g > 1:
        reduced = mod(_divide_terms(num, g, monomial), _divide_terms(den, g, monomial))
        return mul(reduced, ((monomial, g),))
    return num if _below(num, den) else of_atom(Atom("mod", (num, den)))


def _below(num: Poly, den: Poly) -> bool:
    """True when 0 <= num < den is proved."""
    return interval(num)[0] >= 0 and never_negative(sub(sub(den, num), const(1)))


def _flat(kind: Kind, operands: Iterable[Poly]) -> list[Poly]:
    """Operands with nested atoms of the same kind opened, constants folded, sorted, unique."""
    found: set[Poly] = set()
    for poly in operands:
        atom = single_atom(poly)
        found.update(atom.args if atom is not None and atom.kind == kind else (poly,))
    constants = [c for c in map(const_value, found) if c is not None]
    rest = [poly for poly in found if const_value(poly) is None]
    rest.sort(key=lambda poly: [(monomial_order(m), c) for m, c in poly])
    pick = min if kind == "min" else max
    return rest + ([const(pick(constants))] if constants else [])


def _undominated(kind: Kind, operands: list[Poly]) -> list[Poly]:
    """Drop each operand that another one always beats; of equal values the first stays."""
    sign = 1 if kind == "min" else -1
    kept = list(operands)
    for poly in operands:
        others = [other for other in kept if other is not poly]
        if any(never_negative(scale(sub(poly, other), sign)) for other in others):
            kept = others
    return kept
