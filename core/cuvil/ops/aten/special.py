"""Gamma functions, in 64 bits."""

from __future__ import annotations

import math

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value, cast
from cuvil.ops.aten.registry import aten

SHIFT = 8  # an argument is raised by so much: there, few terms of a series are exact
# Coefficients of 1 / x**(2k - 1) of log gamma: B(2k) / (2k (2k - 1)), Abramowitz and Stegun 6.1.41.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
# Of 1 / x**(2k) of digamma: -B(2k) / 2k, 6.3.18.
PSI = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)


def _series(cx: Cx, x: Value, terms: tuple[float, ...]) -> Value:
    """The sum of terms[k] * x**k."""
    b = cx.b
    total = b.scalar(terms[-1], x)
    for term in reversed(terms[:-1]):
        total = b.add(b.mul(total, x), b.scalar(term, x))
    return total


def _reflected(cx: Cx, x: Value) -> tuple[Value, Value, Value]:
    """(whether x is below 1/2, x or 1 - x, the distance of x from the next integer)."""
    b = cx.b
    low = b.lt(x, b.scalar(0.5, x))
    return low, b.select(low, b.sub(b.scalar(1, x), x), x), b.sub(x, b.round(x))


@aten("lgamma", "prims.lgamma.default")
def lgamma(cx: Cx, x: Value) -> Value:
    """log |gamma(x)|: Stirling's series, by reflection below 1/2."""
    b, kind = cx.b, cx.result.dtype.name
    x = as_value(cx, x, "f64")
    low, y, apart = _reflected(cx, x)
    product = y
    for k in range(1, SHIFT):
        product = b.mul(product, b.add(y, b.scalar(k, y)))
    z = b.add(y, b.scalar(SHIFT, y))
    inverse = b.reciprocal(z)
    rest = b.mul(_series(cx, b.mul(inverse, inverse), STIRLING), inverse)
    whole = b.sub(b.mul(b.sub(z, b.scalar(0.5, z)), b.log(z)), z)
    found = b.add(b.add(whole, b.scalar(0.5 * math.log(2 * math.pi), z)), rest)
    far = b.gt(y, b.scalar(1e20, y))  # where the product overflows it changes nothing
    found = b.select(far, found, b.sub(found, b.log(product)))
    sine = b.abs(b.sin(b.mul(apart, b.scalar(math.pi, x))))
    mirrored = b.sub(b.log(b.div(b.scalar(math.pi, x), sine)), found)
    infinite = b.isinf(x)
    result = b.select(low, mirrored, found)
    return cast(cx, b.select(infinite, b.abs(x), result), kind)


@aten("digamma", "prims.digamma.default")
def digamma(cx: Cx, x: Value) -> Value:
    """The derivative of log gamma: its asymptotic series, by reflection below 1/2."""
    b, kind = cx.b, cx.result.dtype.name
    x = as_value(cx, x, "f64")
    low, y, apart = _reflected(cx, x)
    less = b.reciprocal(y)
    for k in range(1, SHIFT):
        less = b.add(less, b.reciprocal(b.add(y, b.scalar(k, y))))
    z = b.add(y, b.scalar(SHIFT, y))
    inverse = b.reciprocal(z)
    square = b.mul(inverse, inverse)
    found = b.sub(b.log(z), b.mul(b.scalar(0.5, z), inverse))
    found = b.sub(b.add(found, b.mul(_series(cx, square, PSI), square)), less)
    angle = b.mul(apart, b.scalar(math.pi, x))
    mirrored = b.sub(found, b.div(b.scalar(math.pi, x), b.tan(angle)))
    pole = b.and_(low, b.eq(apart, b.scalar(0, x)))
    zero = b.eq(x, b.scalar(0, x))
    at_pole = b.select(zero, b.neg(b.reciprocal(x)), b.scalar(float("nan"), x))
    return cast(cx, b.select(pole, at_pole, b.select(low, mirrored, found)), kind)


@aten("polygamma")
def polygamma(cx: Cx, n: int, x: Value) -> Value:
    """The n-th derivative of digamma, by reflection below 1/2 (Abramowitz and Stegun 6.4.7)."""
    if not n:
        return digamma(cx, x)
    b, kind = cx.b, cx.result.dtype.name
    x = as_value(cx, x, "f64")
    low, y, apart = _reflected(cx, x)
    sign = -1.0 if n % 2 == 0 else 1.0
    found = b.mul(_hurwitz(cx, n + 1, y), b.scalar(sign * math.factorial(n), x))
    cotangent = b.reciprocal(b.tan(b.mul(apart, b.scalar(math.pi, x))))
    slope = _series(cx, cotangent, _cotangent_slope(n))
    mirrored = b.mul(found, b.scalar(-sign, x))
    mirrored = b.sub(mirrored, b.mul(slope, b.scalar(math.pi ** (n + 1), x)))
    pole = b.and_(low, b.eq(apart, b.scalar(0, x)))
    result = b.select(low, mirrored, found)
    return cast(cx, b.select(pole, b.scalar(sign * math.inf, x), result), kind)


def _hurwitz(cx: Cx, s: int, y: Value) -> Value:
    """The sum of (y + k)**-s for all k >= 0, y >= 1/2 and s >= 2: first terms, then Euler and
    Maclaurin's formula (Abramowitz and Stegun 23.1.30)."""
    b, shift = cx.b, SHIFT + s
    total = _inverse_power(cx, y, s)
    for k in range(1, shift):
        total = b.add(total, _inverse_power(cx, b.add(y, b.scalar(k, y)), s))
    z = b.add(y, b.scalar(shift, y))
    inverse = b.reciprocal(z)
    rising, terms = float(s), list[float]()  # s (s + 1) ... (s + 2k - 2) / (2k - 2)!
    for k, factor in enumerate(STIRLING, 1):
        terms.append(factor * rising)
        rising *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k - 1) * (2 * k))
    tail = b.mul(_series(cx, b.mul(inverse, inverse), tuple(terms)), inverse)
    tail = b.add(b.add(tail, b.scalar(0.5, z)), b.div(z, b.scalar(s - 1, z)))
    return b.add(total, b.mul(tail, _inverse_power(cx, z, s)))


def _inverse_power(cx: Cx, x: Value, s: int) -> Value:
    inverse = cx.b.reciprocal(x)
    power = inverse
    for _ in range(s - 1):
        power = cx.b.mul(power, inverse)
    return power


def _cotangent_slope(n: int) -> tuple[float, ...]:
    """Coefficients in c = cot(x) of the n-th derivative of cot: c' = -(1 + c**2)."""
    terms = [0.0, 1.0]
    for _ in range(n):
        slope = [k * t for k, t in enumerate(terms)][1:]
        terms = [0.0] * (len(slope) + 2)
        for k, t in enumerate(slope):
            terms[k] -= t
            terms[k + 2] -= t
    return tuple(terms)


@aten("erfinv", "prims.erf_inv.default")
def erfinv(cx: Cx, x: Value) -> Value:
    """The inverse of erf: Winitzki's approximation, made exact by Halley's method."""
    b, kind = cx.b, cx.result.dtype.name
    x = as_value(cx, x, "f64")
    one, a = b.scalar(1, x), 0.147
    log = b.log(b.sub(one, b.mul(x, x)))
    part = b.add(b.scalar(2 / (math.pi * a), x), b.mul(log, b.scalar(0.5, x)))
    root = b.sqrt(b.sub(b.mul(part, part), b.mul(log, b.scalar(1 / a, x))))
    y = b.mul(b.sign(x), b.sqrt(b.max(b.sub(root, part), b.scalar(0, x))))
    for _ in range(3):
        slope = b.mul(b.exp(b.neg(b.mul(y, y))), b.scalar(2 / math.sqrt(math.pi), x))
        step = b.div(b.sub(b.erf(y), x), slope)
        y = b.sub(y, b.div(step, b.add(one, b.mul(y, step))))
    edge = b.eq(b.abs(x), one)
    infinite = b.mul(x, b.scalar(math.inf, x))
    outside = b.gt(b.abs(x), one)
    found = b.select(edge, infinite, b.select(outside, b.scalar(math.nan, x), y))
    return cast(cx, found, kind)
