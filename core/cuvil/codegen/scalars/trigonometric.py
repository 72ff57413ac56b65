"""sin, cos, tan and their inverses.

Arguments are reduced in double precision by parts of pi/2. Results hold their accuracy up to
|x| = 1.6e6 (2^20 quarter turns), with a fused multiply-add up to 1e12; beyond, sin and cos stay
within [-1, 1] while the error grows. Infinity gives NaN.
"""

from __future__ import annotations

import math

from llvmlite import ir

from cuvil.codegen.scalars.math_builder import MathBuilder, fact
from cuvil.codegen.scalars.registry import emitter
from cuvil.ir.dtypes import dtype

# pi/2 = a + b + c; 33 bits in a and in b, so that up to 2^20 times either is exact.
_PI_2 = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_PI_2_FUSED = (math.pi / 2, 6.123233995736766e-17, -1.4973849048591698e-33)  # 53 bits in each
_MAGIC = 1.5 * 2**52

# sin(r) = r + r**3 * p(r*r), cos(r) = 1 - r*r/2 + r**4 * p(r*r) on |r| <= pi/4, minimax fits.
_SIN_F32 = (-0.16666666641606986, 0.008333329383582356, -0.00019839334083020816, 2.718304228e-06)
_COS_F32 = (0.04166666661945376, -0.001388888349686247, 2.479945931078e-05, -2.720568468e-07)
_SIN_F64 = (
    -0.16666666666666666,
    0.008333333333333325,
    -0.00019841269841256175,
    2.7557319214668547e-06,
    -2.5052105019046835e-08,
    1.6058378749055548e-10,
    -7.579240063929108e-13,
)
_COS_F64 = (
    0.041666666666666664,
    -0.0013888888888888879,
    2.480158730157387e-05,
    -2.755731921621681e-07,
    2.0876754526326923e-09,
    -1.147030895100819e-11,
    4.738729589444091e-14,
)


def _reduce(m: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(r in the type of m, the number of quarter turns as an integer of its width)."""
    d = m.at(dtype("f64"))
    wide = x if m.is_double else m.b.fpext(x, d.type)
    shifted = d.fma(wide, 2 / math.pi, _MAGIC)
    n = d.exact_sub(shifted, _MAGIC)
    r = d.clamp(_rest_fused(d, wide, n) if fact(m.facts, "fma") else _rest(d, wide, n), -0.8, 0.8)
    quarters = d.bits(shifted)
    if m.is_double:
        return r, quarters
    return m.b.fptrunc(r, m.type), m.b.trunc(quarters, m.bits_type)


def _rest(d: MathBuilder, x: ir.Value, n: ir.Value) -> ir.Value:
    """x - n pi/2, for n below 2^20."""
    first = d.exact_sub(x, d.exact_mul(n, _PI_2[0]))
    second = d.exact_mul(n, _PI_2[1])
    r = d.exact_sub(first, second)
    lost = d.exact_sub(d.exact_sub(first, r), second)
    return d.exact_add(r, d.exact_sub(lost, d.exact_mul(n, _PI_2[2])))


def _rest_fused(d: MathBuilder, x: ir.Value, n: ir.Value) -> ir.Value:
    """x - n pi/2, for n below 2^40: the first step is exact, since it cancels what n * pi/2 has
    in front."""
    for part in _PI_2_FUSED:
        x = d.fma(n, -part, x)
    return x


def _sin_cos(m: MathBuilder, r: ir.Value) -> tuple[ir.Value, ir.Value]:
    z = m.mul(r, r)
    sine = m.fma(m.mul(z, r), m.polynomial(z, _SIN_F64 if m.is_double else _SIN_F32), r)
    quartic = m.mul(m.mul(z, z), m.polynomial(z, _COS_F64 if m.is_double else _COS_F32))
    half = m.mul(z, 0.5)
    whole = m.exact_sub(1.0, half)
    lost = m.exact_sub(m.exact_sub(1.0, whole), half)
    return sine, m.add(whole, m.add(quartic, lost))


def _odd(m: MathBuilder, quarters: ir.Value) -> ir.Value:
    bit = m.b.and_(quarters, m.bits_value(1))
    return m.b.icmp_unsigned("!=", bit, m.bits_value(0))


@emitter("sin", "cos")
def _sine(m: MathBuilder, name: str, x: ir.Value) -> ir.Value:
    r, quarters = _reduce(m, x)
    sine, cosine = _sin_cos(m, r)
    if name == "cos":
        quarters = m.b.add(quarters, m.bits_value(1))
    value = m.select(_odd(m, quarters), cosine, sine)
    sign = m.shl(m.b.and_(quarters, m.bits_value(2)), m.width - 2)
    value = m.from_bits(m.b.xor(m.bits(value), sign))
    return m.select(m.compare("eq", x, 0.0), x, value) if name == "sin" else value


@emitter("tan")
def _tan(m: MathBuilder, x: ir.Value) -> ir.Value:
    r, quarters = _reduce(m, x)
    sine, cosine = _sin_cos(m, r)
    odd = _odd(m, quarters)
    value = m.div(m.select(odd, m.neg(cosine), sine), m.select(odd, sine, cosine))
    return m.select(m.compare("eq", x, 0.0), x, value)


# asin(x) = x + x**3 * p(x*x) on |x| <= 1/2; atan likewise on |x| <= tan(pi/8). Minimax fits.
_ASIN_F32 = (
    0.16666663306854942,
    0.07500357186227657,
    0.0445399226146988,
    0.031643875263715975,
    0.014984242842201534,
    0.036827696559919965,
)
_ASIN_F64 = (
    0.1666666666666668,
    0.07499999999989261,
    0.04464285715953184,
    0.030381943343572797,
    0.022372198944784143,
    0.017351873824609895,
    0.013977937073779118,
    0.011420783385203453,
    0.010665764780861273,
    0.004112810999429135,
    0.02077325905140423,
    -0.019744393229136587,
    0.031881038113334516,
)
_ATAN_F32 = (
    -0.33333324851749746,
    0.19998925768588016,
    -0.14250637571430524,
    0.10639202160956387,
    -0.06180353731538888,
)
_ATAN_F64 = (
    -0.33333333333333315,
    0.19999999999983217,
    -0.14285714282803882,
    0.11111110899455326,
    -0.09090900770733672,
    0.07692109211666441,
    -0.06663618128229039,
    0.058513690966235536,
    -0.050539859466273034,
    0.03841573315248886,
    -0.018270956962282894,
)


def _pi_parts(m: MathBuilder, turns: float) -> tuple[float, float]:
    """`turns` * pi as a number of the type and what it lacks."""
    exact = math.pi * turns
    if m.is_double:
        return exact, 1.2246467991473532e-16 * turns
    high = m.constant(exact, ir.FloatType()).constant
    return high, exact - high


def _asin_reduced(m: MathBuilder, size: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(whether size > 1/2, asin of size or of sqrt((1 - size) / 2))."""
    large = m.compare("gt", size, 0.5)
    z = m.select(large, m.exact_mul(m.exact_sub(1.0, size), 0.5), m.mul(size, size))
    root = m.select(large, m.sqrt(z), size)
    cubic = m.mul(m.mul(root, z), m.polynomial(z, _ASIN_F64 if m.is_double else _ASIN_F32))
    return large, m.add(root, cubic)


@emitter("asin")
def _asin(m: MathBuilder, x: ir.Value) -> ir.Value:
    """pi/2 - 2 asin(sqrt((1 - |x|) / 2)) above 1/2; NaN outside [-1, 1]."""
    large, small_value = _asin_reduced(m, m.abs(x))
    high, low = _pi_parts(m, 0.5)
    far = m.sub(high, m.sub(m.mul(small_value, 2.0), low))
    return m.copysign(m.select(large, far, small_value), x)


@emitter("acos")
def _acos(m: MathBuilder, x: ir.Value) -> ir.Value:
    large, value = _asin_reduced(m, m.abs(x))
    negative = m.compare("lt", x, 0.0)
    signed = m.copysign(value, x)
    high, low = _pi_parts(m, 0.5)
    middle = m.sub(high, m.sub(signed, low))
    twice = m.mul(value, 2.0)
    high, low = _pi_parts(m, 1.0)
    far = m.select(negative, m.sub(high, m.sub(twice, low)), twice)
    return m.select(large, far, middle)


@emitter("atan")
def _atan(m: MathBuilder, x: ir.Value) -> ir.Value:
    """|x| brought under tan(pi/8) by -1/x or (x - 1) / (x + 1), in one division."""
    size = m.abs(x)
    far, middle = m.compare("gt", size, 2.414213562373095), m.compare("gt", size, 0.4142135623)
    above = m.select(middle, m.exact_sub(size, 1.0), size)
    below = m.select(middle, m.exact_add(size, 1.0), 1.0)
    t = m.div(m.select(far, -1.0, above), m.select(far, size, below))
    z = m.mul(t, t)
    value = m.fma(m.mul(z, t), m.polynomial(z, _ATAN_F64 if m.is_double else _ATAN_F32), t)
    (half, half_low), (quarter, quarter_low) = _pi_parts(m, 0.5), _pi_parts(m, 0.25)
    low = m.select(far, half_low, m.select(middle, quarter_low, 0.0))
    base = m.select(far, half, m.select(middle, quarter, 0.0))
    return m.copysign(m.add(base, m.add(value, low)), x)
