"""The matrices of Winograd's convolutions: m outputs of a filter of r taps by m + r - 1 products.

Y = A^T [(G g) * (B^T d)]: the Cook-Toom construction over the points 0, +-a, +-b, ... and infinity
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308). Which
points decides how rounding grows: those chosen here were the best of small fractions, measured
against float64.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import chain

Matrix = tuple[tuple[Fraction, ...], ...]

_PAIRS = {
    4: (Fraction(1),),
    6: (Fraction(5, 8), Fraction(3, 2)),
    8: (Fraction(1, 2), Fraction(1), Fraction(2)),
}


@lru_cache
def matrices(m: int, taps: int) -> tuple[Matrix, Matrix, Matrix]:
    """(A^T [m, s], G [s, taps], B^T [s, s]) for s = m + taps - 1 in `winograd_cost.SIZES`, or 1."""
    size = m + taps - 1
    points = _points(size)
    output = [[p**i for p in points] + [Fraction(int(i == m - 1))] for i in range(m)]
    others = [[q for q in points if q != p] for p in points]
    scale = [_value(_polynomial(rest), p) for rest, p in zip(others, points, strict=True)]
    weights = [[p**k / s for k in range(taps)] for p, s in zip(points, scale, strict=True)]
    weights.append([Fraction(int(k == taps - 1)) for k in range(taps)])
    data = [_padded(_polynomial(rest), size) for rest in (*others, points)]
    return _frozen(output), _frozen(weights), _frozen(data)


def growth(m: tuple[int, int], taps: tuple[int, int]) -> float:
    """The error of tiles of m results, over that of one running sum, for random images and taps.

    Every product is off by a share of itself, and weighs in a result as often as A^T says; a
    running sum of `taps` times more terms is off by the root of that. Measured: within a quarter.
    """
    return math.prod(_axis_growth(k, r) / r for k, r in zip(m, taps, strict=True))


def _points(size: int) -> list[Fraction]:
    """Those for so many products, but infinity."""
    pairs = [(a, -a) for a in _PAIRS[size]] if size > 1 else []
    return [Fraction(0), *chain.from_iterable(pairs)] if pairs else []


def _axis_growth(m: int, taps: int) -> float:
    output, weights, data = matrices(m, taps)
    sizes = [_squares(g) * _squares(d) for g, d in zip(weights, data, strict=True)]
    results = [sum(a * a * size for a, size in zip(row, sizes, strict=True)) for row in output]
    return math.sqrt(sum(results) / m)


def _squares(row: tuple[Fraction, ...]) -> Fraction:
    return sum((x * x for x in row), Fraction(0))


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
