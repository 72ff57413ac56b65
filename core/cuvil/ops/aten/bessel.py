"""Bessel functions and the scaled complement of erf, in 64 bits.

Power series about 0 where they are accurate, Hankel's asymptotic series beyond: Abramowitz and
Stegun, 9.1.10 to 9.1.13, 9.2.5, 9.2.6, 9.6.10 to 9.6.13, 9.7.1, 9.7.2, and 7.1.23 for erfc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value, cast
from cuvil.ops.aten.registry import aten, aten_rows

NEAR = 18.0  # up to here the series of I, J and Y are used
NEAR_K = 9.0  # K falls so fast that its series cancels earlier
TERMS, FAR_TERMS = 64, 10
EULER = 0.57721566490153286061


def _polynomial(cx: Cx, x: Value, terms: Sequence[float]) -> Value:
    """The sum of terms[k] * x**k."""
    b = cx.b
    total = b.scalar(terms[-1], x)
    for term in reversed(terms[:-1]):
        total = b.add(b.mul(total, x), b.scalar(term, x))
    return total


def _harmonic(k: int) -> float:
    return math.fsum(1 / n for n in range(1, k + 1))


def _near(order: int, weights: Callable[[int], float], sign: int) -> list[float]:
    """Coefficients of (x / 2)**(2k): weights(k) * sign**k / (k! (k + order)!)."""
    return [
        weights(k) * sign**k / (math.factorial(k) * math.factorial(k + order)) for k in range(TERMS)
    ]


def _hankel(order: int) -> list[float]:
    """Coefficients a(k) of 1 / x**k in the asymptotic series of this order."""
    found, m = [1.0], 4 * order * order
    for k in range(1, 2 * FAR_TERMS):
        found.append(found[-1] * (m - (2 * k - 1) ** 2) / (8 * k))
    return found


def _modified(cx: Cx, x: Value, order: int, scaled: bool) -> Value:
    """I of |x|, times exp(-|x|) if scaled."""
    b = cx.b
    size = b.abs(x)
    half = b.mul(b.min(size, b.scalar(NEAR, x)), b.scalar(0.5, x))
    near = _polynomial(cx, b.mul(half, half), _near(order, lambda k: 1.0, 1))
    near = b.mul(near, half) if order else near
    far_x = b.max(size, b.scalar(NEAR, x))
    terms = [(-1) ** k * a for k, a in enumerate(_hankel(order))]
    far = _polynomial(cx, b.reciprocal(far_x), terms)
    far = b.div(far, b.sqrt(b.mul(far_x, b.scalar(2 * math.pi, x))))
    if scaled:
        near = b.mul(near, b.exp(b.neg(b.min(size, b.scalar(NEAR, x)))))
    else:
        far = b.mul(far, b.exp(far_x))
    found = b.select(b.le(size, b.scalar(NEAR, x)), near, far)
    return found if order == 0 else b.mul(found, b.sign(x))


def modified(order_and_scale: tuple[int, bool]) -> Callable[..., Value]:
    """A modified function of the first kind."""

    def compose(cx: Cx, x: Value) -> Value:
        found = _modified(cx, as_value(cx, x, "f64"), *order_and_scale)
        return cast(cx, found, cx.result.dtype.name)

    return compose


aten_rows(
    modified,
    {
        "prims.bessel_i0.default": (0, False), "prims.bessel_i0e.default": (0, True),
        "prims.bessel_i1.default": (1, False), "prims.bessel_i1e.default": (1, True),
        "special_modified_bessel_i0": (0, False), "special_modified_bessel_i1": (1, False),
        "i0": (0, False), "special_i0e": (0, True), "special_i1": (1, False),
        "special_i1e": (1, True),
    },
)  # fmt: skip


def falling(order_and_scale: tuple[int, bool]) -> Callable[..., Value]:
    """A modified function of the second kind, times exp(x) if scaled."""
    order, scaled = order_and_scale

    def compose(cx: Cx, x: Value) -> Value:
        b = cx.b
        x = as_value(cx, x, "f64")
        low = b.min(x, b.scalar(NEAR_K, x))
        half = b.mul(low, b.scalar(0.5, x))
        square = b.mul(half, half)
        if order == 0:
            rest = _polynomial(cx, square, _near(0, lambda k: _harmonic(k) - EULER, 1))
            near = b.sub(rest, b.mul(b.log(half), _modified(cx, low, 0, False)))
        else:
            sums = _near(1, lambda k: (_harmonic(k) + _harmonic(k + 1)) / 2 - EULER, 1)
            rest = b.mul(half, _polynomial(cx, square, sums))
            near = b.sub(b.mul(b.log(half), _modified(cx, low, 1, False)), rest)
            near = b.add(near, b.reciprocal(low))
        high = b.max(x, b.scalar(NEAR_K, x))
        far = _polynomial(cx, b.reciprocal(high), _hankel(order))
        far = b.mul(far, b.sqrt(b.div(b.scalar(math.pi / 2, x), high)))
        if scaled:
            near = b.mul(near, b.exp(low))
        else:
            far = b.mul(far, b.exp(b.neg(high)))
        found = b.select(b.le(x, b.scalar(NEAR_K, x)), near, far)
        found = b.select(b.eq(x, b.scalar(0, x)), b.scalar(math.inf, x), found)
        return cast(cx, found, cx.result.dtype.name)

    return compose


aten_rows(
    falling,
    {
        "special_modified_bessel_k0": (0, False), "special_modified_bessel_k1": (1, False),
        "special_scaled_modified_bessel_k0": (0, True),
        "special_scaled_modified_bessel_k1": (1, True),
    },
)  # fmt: skip


def _wave(cx: Cx, x: Value, order: int, second: bool) -> Value:
    """J (or Y) of x beyond NEAR: a cosine (a sine) of falling size."""
    b = cx.b
    high = b.max(x, b.scalar(NEAR, x))
    inverse = b.reciprocal(high)
    square = b.mul(inverse, inverse)
    terms = _hankel(order)
    even = [(-1) ** k * a for k, a in enumerate(terms[0::2])]
    odd = [(-1) ** k * a for k, a in enumerate(terms[1::2])]
    p, q = _polynomial(cx, square, even), b.mul(_polynomial(cx, square, odd), inverse)
    phase = b.sub(high, b.scalar((order / 2 + 0.25) * math.pi, x))
    cosine, sine = b.cos(phase), b.sin(phase)
    if second:
        wave = b.add(b.mul(p, sine), b.mul(q, cosine))
    else:
        wave = b.sub(b.mul(p, cosine), b.mul(q, sine))
    return b.mul(wave, b.sqrt(b.mul(inverse, b.scalar(2 / math.pi, x))))


def first_kind(order: int) -> Callable[..., Value]:
    """J."""

    def compose(cx: Cx, x: Value) -> Value:
        b = cx.b
        x = as_value(cx, x, "f64")
        size = b.abs(x)
        found = b.select(
            b.le(size, b.scalar(NEAR, x)), _series_j(cx, size, order), _wave(cx, size, order, False)
        )
        return cast(cx, b.mul(found, b.sign(x)) if order else found, cx.result.dtype.name)

    return compose


def _series_j(cx: Cx, x: Value, order: int) -> Value:
    b = cx.b
    half = b.mul(b.min(x, b.scalar(NEAR, x)), b.scalar(0.5, x))
    found = _polynomial(cx, b.mul(half, half), _near(order, lambda k: 1.0, -1))
    return b.mul(found, half) if order else found


aten_rows(first_kind, {"prims.bessel_j0.default": 0, "prims.bessel_j1.default": 1,
                       "special_bessel_j0": 0, "special_bessel_j1": 1})  # fmt: skip


def second_kind(order: int) -> Callable[..., Value]:
    """Y."""

    def compose(cx: Cx, x: Value) -> Value:
        b = cx.b
        x = as_value(cx, x, "f64")
        half = b.mul(b.min(x, b.scalar(NEAR, x)), b.scalar(0.5, x))
        square = b.mul(half, half)
        near = b.mul(b.mul(b.log(half), b.scalar(2.0, x)), _series_j(cx, x, order))
        if order == 0:
            rest = _polynomial(cx, square, _near(0, lambda k: 2 * (_harmonic(k) - EULER), -1))
            near = b.sub(near, rest)
        else:
            sums = _near(1, lambda k: _harmonic(k) + _harmonic(k + 1) - 2 * EULER, -1)
            near = b.sub(near, b.mul(half, _polynomial(cx, square, sums)))
            near = b.sub(near, b.reciprocal(half))
        near = b.mul(near, b.scalar(1 / math.pi, x))
        found = b.select(b.le(x, b.scalar(NEAR, x)), near, _wave(cx, x, order, True))
        zero = b.eq(x, b.scalar(0, x))
        return cast(cx, b.select(zero, b.scalar(-math.inf, x), found), cx.result.dtype.name)

    return compose


aten_rows(second_kind, {"special_bessel_y0": 0, "special_bessel_y1": 1})


@aten("prims.spherical_bessel_j0.default", "special_spherical_bessel_j0")
def spherical(cx: Cx, x: Value) -> Value:
    """sin(x) / x."""
    b = cx.b
    x = as_value(cx, x, "f64")
    zero = b.eq(x, b.scalar(0, x))
    found = b.select(zero, b.scalar(1, x), b.div(b.sin(x), x))
    found = b.select(b.isinf(x), b.scalar(0, x), found)
    return cast(cx, found, cx.result.dtype.name)


@aten("prims.erfcx.default", "special_erfcx")
def erfcx(cx: Cx, x: Value) -> Value:
    """exp(x**2) * erfc(x): beyond 4 its asymptotic series."""
    b = cx.b
    x = as_value(cx, x, "f64")
    low = b.min(x, b.scalar(4.0, x))
    near = b.mul(b.exp(b.mul(low, low)), b.sub(b.scalar(1, x), b.erf(low)))
    high = b.max(x, b.scalar(4.0, x))
    terms = [(-1.0) ** k * math.prod(range(1, 2 * k, 2)) for k in range(9)]
    inverse = b.reciprocal(b.mul(b.mul(high, high), b.scalar(2.0, x)))
    far = b.div(_polynomial(cx, inverse, terms), b.mul(high, b.scalar(math.sqrt(math.pi), x)))
    return cast(cx, b.select(b.le(x, b.scalar(4.0, x)), near, far), cx.result.dtype.name)
