"""e**x and what is made of it: exp2, expm1, sigmoid, tanh (f64), sinh, cosh.

x = n * 2 ln 2 + r with |r| <= ln 2, so e**x = e**r * s * s with s = 2**n. Two multiplications by
s reach every result, from infinity to the smallest denormal, with one rounding and no special
case; a step of ln 2 would need one polynomial term less and several integer operations more.
All coefficients are minimax fits made for this project (Remez exchange in 50 digits).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from cuvil.codegen.scalars.logarithm import LN2_F32, LN2_F64
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.codegen.scalars.registry import emitter


@dataclass(frozen=True)
class _Reduction:
    """high + low is 2 ln 2 with n * high exact; low_x, high_x are where e**x is 0 and infinite.

    `magic` puts n + bias, rounded, into the last places of a float. e**r = 1 + r + r*r*q(r),
    relative error 2^-30.6 and 2^-56.
    """

    high: float
    low: float
    magic: float
    mantissa: int
    low_x: float
    high_x: float
    q: tuple[float, ...]


_F32 = _Reduction(
    high=1.38629150390625,
    low=2.857213530660374e-06,
    magic=1.5 * 2**23 + 127,
    mantissa=23,
    low_x=-104.0,
    high_x=90.0,
    q=(
        0.5000000114886113,
        0.16666674296119013,
        0.04166651703907196,
        0.008332495767177237,
        0.001389389408770795,
        0.00020115137930284887,
        2.443321930118097e-05,
    ),
)
_F64 = _Reduction(
    high=1.3862943611197807,
    low=1.0995846037416742e-13,
    magic=1.5 * 2**52 + 1023,
    mantissa=52,
    low_x=-746.0,
    high_x=711.0,
    q=(
        0.4999999999999992,
        0.1666666666666697,
        0.04166666666670556,
        0.008333333333263492,
        0.0013888888883160108,
        0.00019841269896923486,
        2.4801591037098222e-05,
        2.755729953780869e-06,
        2.7556112794954836e-07,
        2.5055149692712626e-08,
        2.1065929240051072e-09,
        1.5933107787690818e-10,
    ),
)


def _table(m: MathBuilder) -> _Reduction:
    return _F64 if m.is_double else _F32


def reduce_exponent(m: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(r, s) for x within [low_x, high_x] or NaN: e**x = e**r * s * s, |r| <= ln 2."""
    t = _table(m)
    shifted = m.fma(x, 0.5 / math.log(2), t.magic)
    scale = m.from_bits(m.shl(m.bits(shifted), t.mantissa))
    n = m.exact_sub(shifted, t.magic)
    return m.fma(n, -t.low, m.fma(n, -t.high, x)), scale


def exp_minus_1_reduced(m: MathBuilder, r: ir.Value) -> ir.Value:
    """e**r - 1 for |r| <= ln 2, small relative to max(|r|, 1/2 ulp of 1)."""
    return m.fma(m.mul(r, r), m.polynomial(r, _table(m).q), r)


def exp_clamped(m: MathBuilder, x: ir.Value, high_x: float, factor: float = 1.0) -> ir.Value:
    """factor * e**min(x, high_x), factor a power of two; NaN stays NaN."""
    r, scale = reduce_exponent(m, m.clamp(x, _table(m).low_x, high_x))
    value = m.add(exp_minus_1_reduced(m, r), 1.0)
    first = scale if factor == 1.0 else m.exact_mul(scale, factor)
    return m.exact_mul(m.exact_mul(value, first), scale)


@emitter("exp")
def exp(m: MathBuilder, x: ir.Value) -> ir.Value:
    """e**x."""
    return exp_clamped(m, x, _table(m).high_x)


@emitter("exp2")
def _exp2(m: MathBuilder, x: ir.Value) -> ir.Value:
    """2**x = e**(f ln 2) * s * s with x = 2 n + f, f exact."""
    t = _table(m)
    x = m.clamp(x, t.low_x / math.log(2), t.high_x / math.log(2))
    shifted = m.fma(x, 0.5, t.magic)
    scale = m.from_bits(m.shl(m.bits(shifted), t.mantissa))
    fraction = m.fma(m.exact_sub(shifted, t.magic), -2.0, x)
    high = float(math.log(2))
    r = m.mul(fraction, high)
    value = m.add(exp_minus_1_reduced(m, r), 1.0)
    return m.exact_mul(m.exact_mul(value, scale), scale)


def expm1_clamped(m: MathBuilder, x: ir.Value, high_x: float) -> ir.Value:
    """e**min(x, high_x) - 1 but for the sign of zero: s * (s * (e**r - 1) + (s - 1/s))."""
    r, scale = reduce_exponent(m, m.clamp(x, _table(m).low_x, high_x))
    bias = 127 if not m.is_double else 1023
    twice_bias = m.bits_value(2 * bias << _table(m).mantissa)
    inverse = m.from_bits(m.b.sub(twice_bias, m.bits(scale)))
    inner = m.fma(scale, exp_minus_1_reduced(m, r), m.exact_sub(scale, inverse))
    return m.exact_mul(scale, inner)


@emitter("expm1")
def _expm1(m: MathBuilder, x: ir.Value) -> ir.Value:
    return m.copysign(expm1_clamped(m, x, _table(m).high_x), x)


@dataclass(frozen=True)
class _Logistic:
    """high + low is ln 2 with n * high exact; beyond low_x, high_x the result is 0 and 1.

    `magic` puts the biased exponent of w * 2**n into the last places of a float. e**r = 1 + r +
    r*r*q(r) on |r| <= ln 2 / 2, relative error 2^-28 and 2^-57.
    """

    high: float
    low: float
    magic: float
    w: float
    low_x: float
    high_x: float
    q: tuple[float, ...]


_LOGISTIC_F32 = _Logistic(
    *LN2_F32,
    magic=1.5 * 2**23 + 127 - 75,
    w=2.0**-75,
    low_x=-104.0,
    high_x=25.0,
    q=(
        0.4999999344143403,
        0.16666520524400455,
        0.04166838890278908,
        0.008368730055270534,
        0.001381460066979223,
    ),
)
_LOGISTIC_F64 = _Logistic(
    *LN2_F64,
    magic=1.5 * 2**52 + 1023 - 538,
    w=2.0**-538,
    low_x=-746.0,
    high_x=40.0,
    q=(
        0.5000000000000011,
        0.16666666666666413,
        0.04166666666653032,
        0.008333333333494324,
        0.0013888888943580865,
        0.0001984126950673501,
        2.4801493154573346e-05,
        2.7557586359938038e-06,
        2.763022721635922e-07,
        2.5000027862476784e-08,
    ),
)


@emitter("sigmoid")
def _sigmoid(m: MathBuilder, x: ir.Value) -> ir.Value:
    """w / (w + w * e**-x), w so small that w * e**-x is finite down to the last denormal result.

    The divisor is (w + a) + a * (e**r - 1) with -x = n ln 2 + r and a = w * 2**n: it is rounded
    once, and never below w, so the result never leaves [0, 1].
    """
    t = _LOGISTIC_F64 if m.is_double else _LOGISTIC_F32
    x = m.clamp(x, t.low_x, t.high_x)
    shifted = m.fma(x, -1 / math.log(2), t.magic)
    a = m.from_bits(m.shl(m.bits(shifted), _table(m).mantissa))
    n = m.exact_sub(shifted, t.magic)
    minus_r = m.fma(n, t.low, m.fma(n, t.high, x))
    q = m.polynomial(minus_r, [c * (-1) ** i for i, c in enumerate(t.q)])
    lacks = m.sub(minus_r, m.mul(m.mul(minus_r, minus_r), q))  # 1 - e**r
    return m.div(t.w, m.sub(m.exact_add(a, t.w), m.mul(a, lacks)))


def double_angle(
    m: MathBuilder, x: ir.Value, slope: float, p: tuple[float, ...], q: tuple[float, ...]
) -> ir.Value:
    """2 v / (1 + v*v), never above 1, of v = a / d for x >= 0 or NaN, with z = x*x,
    a = x * (slope + z*p(z)) and d = 2 + z*q(z).

    Near 1 an error of v hardly shows, so v may be a short ratio. With s = d*d + a*a and
    t = s - 2 d the result is a - a*t/s, which is accurate for small x, and 1 - (d - a)**2 / s,
    which is accurate for large x; choosing before the division leaves only one.
    """
    z = m.mul(x, x)
    lead = m.constant(slope)
    lacks = slope - float(np.float32(slope))
    a = m.fma(x, m.fma(z, m.polynomial(z, p), lacks), m.mul(x, lead))
    b = m.mul(z, m.polynomial(z, q))
    d = m.add(b, 2.0)
    t = m.fma(b, d, m.mul(a, a))
    gap = m.sub(d, a)
    large = m.compare("gt", x, 1.0)
    lost = m.select(large, m.mul(gap, gap), m.mul(a, t))
    return m.sub(m.select(large, 1.0, a), m.div(lost, m.fma(d, 2.0, t)))


# tanh(x) as `double_angle` has it; at the limit it has rounded to 1. Minimax fit for |x| <= 9.02,
# all terms positive, relative error 2^-27.
_TANH_LIMIT = 9.2
_TANH_P = (0.029769326464390534, 0.00011416588920804903)
_TANH_Q = (0.22620522245160826, 0.0024121851526267756, 2.4547347936300466e-06)


@emitter("tanh")
def _tanh(m: MathBuilder, x: ir.Value) -> ir.Value:
    if m.is_double:
        e = expm1_clamped(m, m.mul(m.clamp(x, -20.0, 20.0), 2.0), 40.0)
        return m.copysign(m.div(e, m.add(e, 2.0)), x)
    size = m.at_most(m.abs(x), _TANH_LIMIT)
    return m.copysign(double_angle(m, size, 1.0, _TANH_P, _TANH_Q), x)


# sinh(x) = x + x**3 * p(x*x) on |x| <= 1, relative error 2^-34 and 2^-63.
_SINH_F32 = (
    0.16666666488005902,
    0.008333350649990755,
    0.00019836055792643508,
    2.8175018480525995e-06,
)
_SINH_F64 = (
    0.16666666666666669,
    0.008333333333333137,
    0.00019841269841438524,
    2.755731915506104e-06,
    2.5052123443797994e-08,
    1.6057236715910074e-10,
    7.759425122513505e-13,
)


@emitter("sinh")
def _sinh(m: MathBuilder, x: ir.Value) -> ir.Value:
    size = m.abs(x)
    half = exp_clamped(m, size, _table(m).high_x, factor=0.5)
    large = m.copysign(m.sub(half, m.div(0.25, half)), x)
    z = m.mul(x, x)
    cubic = m.mul(m.mul(z, x), m.polynomial(z, _SINH_F64 if m.is_double else _SINH_F32))
    return m.select(m.compare("gt", size, 1.0), large, m.add(x, cubic))


@emitter("cosh")
def _cosh(m: MathBuilder, x: ir.Value) -> ir.Value:
    half = exp_clamped(m, m.abs(x), _table(m).high_x, factor=0.5)
    return m.add(half, m.div(0.25, half))
