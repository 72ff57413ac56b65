"""Exact float values of shape arithmetic: a dimension expression over a positive integer.

Exporters compute extents by way of floats (`Floor(Cast(Shape) * 0.5)`). As long as a value is a
quotient of dimension and number it is exact here, and floor and ceil give dimensions again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cuvil.ir.dims import Dim, SymDim, ceil_div

__all__ = ["Ratio", "UnknownValueError", "ratio"]

_MAX_DENOMINATOR = 1 << 16


class UnknownValueError(Exception):
    """A value cannot be told at compile time."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """`num / den`; den > 0. Arithmetic raises UnknownValueError where the form does not hold."""

    num: Dim
    den: int = 1

    def __add__(self, other: Ratio) -> Ratio:
        return _reduced(self.num * other.den + other.num * self.den, self.den * other.den)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + -other

    def __mul__(self, other: Ratio) -> Ratio:
        return _reduced(self.num * other.num, self.den * other.den)

    def __truediv__(self, other: Ratio) -> Ratio:
        if self == other and isinstance(self.num, SymDim):
            return Ratio(1)
        if isinstance(other.num, SymDim) or other.num == 0:
            raise UnknownValueError
        sign = 1 if other.num > 0 else -1
        return _reduced(self.num * (sign * other.den), self.den * abs(other.num))

    def __neg__(self) -> Ratio:
        return Ratio(-self.num, self.den)

    def floor(self) -> Dim:
        """The greatest integer not above the value."""
        return self.num // self.den

    def ceil(self) -> Dim:
        """The least integer not below the value."""
        return ceil_div(self.num, self.den)

    def round(self) -> Dim:
        """The nearest integer; UnknownValueError where a tie could be."""
        if self.den == 1:
            return self.num
        if isinstance(self.num, SymDim):
            raise UnknownValueError
        return round(Fraction(self.num, self.den))


def ratio(value: object) -> Ratio:
    """An int, dimension, float or Ratio as a Ratio."""
    if isinstance(value, Ratio):
        return value
    if isinstance(value, SymDim):
        return Ratio(value)
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise UnknownValueError
    exact = Fraction(number)
    return _reduced(exact.numerator, exact.denominator)


def _reduced(num: Dim, den: int) -> Ratio:
    if isinstance(num, int):
        exact = Fraction(num, den)
        num, den = exact.numerator, exact.denominator
    if den > _MAX_DENOMINATOR:
        raise UnknownValueError
    return Ratio(num, den)
