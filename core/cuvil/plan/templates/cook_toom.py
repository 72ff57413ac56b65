"""The matrices of Winograd's convolutions: m outputs of a 3-tap filter by m + 2 products.

Y = A^T [(G g) * (B^T d)]: the Cook-Toom construction over the points 0, +-a, +-b, ... and infinity
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308). Which
points decides how rounding grows: those chosen here were the best of small fractions, measured
against float64.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

Matrix = tuple[tuple[Fraction, ...], ...]

TAPS = 3
_POINTS = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}


@lru_cache
def matrices(m: int) -> tuple[Matrix, Matrix, Matrix]:
    """(A^T [m, m+2], G [m+2, 3], B^T [m+2, m+2]) for m = 2 or 4 outputs."""
    points = _POINTS[m]
    size = m + TAPS - 1
    output = [[p**i for p in points] + [Fraction(int(i == m - 1))] for i in range(m)]
    others = [[q for q in points if q != p] for p in points]
    scale = [_value(_polynomial(rest), p) for rest, p in zip(others, points, strict=True)]
    weights = [[p**k / s for k in range(TAPS)] for p, s in zip(points, scale, strict=True)]
    weights.append([Fraction(int(k == TAPS - 1)) for k in range(TAPS)])
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
