"""The matrices of Winograd's convolutions: m outputs of a filter of r taps by m + r - 1 products.

Y = A^T [(G g) * (B^T d)]: the Cook-Toom construction over the points 0, +-a, +-b, ... and infinity
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308). Which
points decides how rounding grows: those chosen here were the best of small fractions, measured
against float64.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

Matrix = tuple[tuple[Fraction, ...], ...]

_POINTS = {
    1: (),
    4: (Fraction(0), Fraction(1), Fraction(-1)),
    6: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}


@lru_cache
def matrices(m: int, taps: int) -> tuple[Matrix, Matrix, Matrix]:
    """(A^T [m, s], G [s, taps], B^T [s, s]) for s = m + taps - 1 in `winograd_cost.SIZES`, or 1."""
    size = m + taps - 1
    points = _POINTS[size]
    output = [[p**i for p in points] + [Fraction(int(i == m - 1))] for i in range(m)]
    others = [[q for q in points if q != p] for p in points]
    scale = [_value(_polynomial(rest), p) for rest, p in zip(others, points, strict=True)]
    weights = [[p**k / s for k in range(taps)] for p, s in zip(points, scale, strict=True)]
    weights.append([Fraction(int(k == taps - 1)) for k in range(taps)])
    data = [_padded(_polynomial(rest), size) for rest in (*others, list(points))]
    return _frozen(output), _frozen(weights), _frozen(data)


def _polynomial(roots: list[Fraction]) -> list[Fraction]:
    """Coefficients, lowest first, of the product of (x - root)."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [s - root * c for s, c in zip(shifted, [*found, Fraction(0)], strict=True)]
    return found


def _value(polynomial: list[Fraction], x: Fraction) -> Fraction:
    return sum((c * x**k for k, c in enumerate(polynomial)), Fraction(0))


def _padded(row: list[Fraction], size: int) -> list[Fraction]:
    return row + [Fraction(0)] * (size - len(row))


def _frozen(rows: list[list[Fraction]]) -> Matrix:
    return tuple(map(tuple, rows))
