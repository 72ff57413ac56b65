"""Extents multiplied by a float32 number, as engines compute them: floor(float32(n) * scale).

The product is rounded to a float32 before the floor is taken, so that n * 13 // 5 says nearly, but
not always, what n times the float32 nearest to 2.6 gives: 45 gives 116, and 35 gives 91.
"""

from __future__ import annotations

from fractions import Fraction

from cuvil.ir.dims_poly import Atom, Poly, const, const_value, of_atom

MANTISSA = 24  # bits of a float32's


def scaled_number(n: int, numerator: int, denominator: int) -> int:
    """floor(float32(n) * scale), where the float32 scale is the quotient of the two numbers."""
    return rounded(rounded(n) * numerator) // denominator


def rounded(n: int) -> int:
    """The integer that float32(n) is: 24 bits, ties to even. No extent is negative: such stay."""
    drop = max(n.bit_length() - MANTISSA, 0) if n > 0 else 0
    return round(Fraction(n, 1 << drop)) << drop


def scaled(poly: Poly, numerator: int, denominator: int) -> Poly:
    """`scaled_number` of a polynomial.

    ValueError where no positive float32 number of moderate size is that quotient.
    """
    power = denominator > 0 and denominator & (denominator - 1) == 0
    if not power or denominator >> 62 or numerator != rounded(numerator) or numerator <= 0:
        raise ValueError(f"an extent cannot be scaled by {numerator}/{denominator}")
    value = const_value(poly)
    if value is not None:
        return const(scaled_number(value, numerator, denominator))
    return of_atom(Atom("scaled", (poly, const(numerator), const(denominator))))


def ratio_of(atom: Atom) -> tuple[int, int]:
    """The scale of a scaled atom: numerator, denominator."""
    numerator, denominator = (const_value(arg) for arg in atom.args[1:])
    assert numerator is not None and denominator is not None
    return numerator, denominator
