"""log, log1p, and the inverse hyperbolic functions made of log1p.

x = 2**k * (1 + f) with 1 + f within [sqrt(1/2), sqrt(2)), s = f / (2 + f), and
log(1 + f) = f - (f*f/2 - s * (f*f/2 + R(s*s))).
"""

from __future__ import annotations

import math

from llvmlite import ir

from cuvil.codegen.scalars.math_builder import MathBuilder, Operand
from cuvil.codegen.scalars.registry import emitter

# R(z) = z * p(z), minimax fits: relative error 2^-36 and 2^-65.
LOG_F32 = (0.6666666606173388, 0.4000026344510562, 0.28541063281425605, 0.2352077210121117)
LOG_F64 = (
    0.6666666666666666,
    0.4000000000000305,
    0.2857142856988844,
    0.22222222547245504,
    0.1818178244555186,
    0.15386832448576818,
    0.13255283129013357,
    0.1320910772358304,
)
# ln 2 in two parts, the first short enough for k times it to be exact.
LN2_F32 = (0.693145751953125, 1.4286068203094173e-06)
LN2_F64 = (0.693147180559663, 2.8235290563031577e-13)


def split(m: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(k as a float, 1 + f) of a positive finite x, denormals too."""
    mantissa, tiny = (52, 2.0**-1022) if m.is_double else (23, 2.0**-126)
    small = m.compare("lt", x, tiny)
    x = m.select(small, m.exact_mul(x, 2.0**mantissa), x)
    root = 0x3FE6A09E667F3BCD if m.is_double else 0x3F3504F3  # sqrt(1/2)
    exponent = m.b.ashr(m.b.sub(m.bits(x), m.bits_value(root)), m.bits_value(mantissa))
    one_f = m.from_bits(m.b.sub(m.bits(x), m.shl(exponent, mantissa)))
    k = m.b.sitofp(exponent, m.type)
    return m.exact_add(k, m.select(small, -float(mantissa), 0.0)), one_f


def log_of(m: MathBuilder, x: ir.Value, correction: Operand = 0.0) -> ir.Value:
    """log of a positive finite x, plus a small correction."""
    k, one_f = split(m, x)
    high, low = LN2_F64 if m.is_double else LN2_F32
    f = m.exact_sub(one_f, 1.0)
    s = m.div(f, m.exact_add(f, 2.0))
    z = m.mul(s, s)
    half = m.mul(m.mul(f, 0.5), f)
    rest = m.mul(z, m.polynomial(z, LOG_F64 if m.is_double else LOG_F32))
    tail = m.fma(s, m.add(half, rest), m.fma(k, low, correction))
    return m.fma(k, high, m.sub(f, m.sub(half, tail)))


def _with_special(m: MathBuilder, value: ir.Value, x: ir.Value, pole: float) -> ir.Value:
    """Results for infinity, the pole (-infinity), numbers below it and NaN (NaN)."""
    value = m.select(m.compare("eq", x, math.inf), x, value)
    value = m.select(m.compare("eq", x, pole), -math.inf, value)
    return m.select(m.compare("ge", x, pole), value, math.nan)


@emitter("log")
def _log(m: MathBuilder, x: ir.Value) -> ir.Value:
    return _with_special(m, log_of(m, x), x, 0.0)


def log1p_of(m: MathBuilder, x: ir.Value) -> ir.Value:
    """log(1 + x) for finite x above -1: log(u) with u = 1 + x rounded, plus what u lost over u."""
    u = m.exact_add(x, 1.0)
    large = m.compare("gt", x, 1.0)
    lost = m.select(large, m.exact_sub(1.0, m.exact_sub(u, x)), m.exact_sub(x, m.exact_sub(u, 1.0)))
    return log_of(m, u, m.div(lost, u))


@emitter("log1p")
def _log1p(m: MathBuilder, x: ir.Value) -> ir.Value:
    value = m.select(m.compare("eq", x, 0.0), x, log1p_of(m, x))  # the sign of zero
    return _with_special(m, value, x, -1.0)


_HUGE = 2.0**60  # x*x is still finite, and x*x + 1 has long been x*x


@emitter("asinh")
def _asinh(m: MathBuilder, x: ir.Value) -> ir.Value:
    """log1p(|x| + x*x / (1 + sqrt(x*x + 1))), or log |x| + ln 2."""
    size = m.abs(x)
    z = m.mul(size, size)
    inner = m.add(size, m.div(z, m.add(m.sqrt(m.add(z, 1.0)), 1.0)))
    return m.copysign(_log1p_or_double(m, size, inner), x)


@emitter("acosh")
def _acosh(m: MathBuilder, x: ir.Value) -> ir.Value:
    """log1p(t + sqrt(2 t + t*t)) with t = x - 1, or log x + ln 2; NaN below 1."""
    t = m.exact_sub(x, 1.0)
    inner = m.add(t, m.sqrt(m.mul(t, m.add(t, 2.0))))
    value = _log1p_or_double(m, x, inner)
    return m.select(m.compare("ge", x, 1.0), value, math.nan)


def _log1p_or_double(m: MathBuilder, size: ir.Value, inner: ir.Value) -> ir.Value:
    """log1p(inner), or log(2 size) for a huge size; infinity and NaN pass."""
    huge = m.compare("gt", size, _HUGE)
    value = log1p_of(m, m.select(huge, size, inner))
    value = m.add(value, m.select(huge, math.log(2), 0.0))
    return m.select(m.compare("lt", size, math.inf), value, size)


@emitter("atanh")
def _atanh(m: MathBuilder, x: ir.Value) -> ir.Value:
    """log1p(2|x| / (1 - |x|)) / 2; infinite at 1, NaN beyond."""
    size = m.abs(x)
    inner = m.div(m.add(size, size), m.exact_sub(1.0, size))
    value = m.mul(log1p_of(m, inner), 0.5)
    value = m.select(m.compare("eq", size, 1.0), math.inf, value)
    value = m.select(m.compare("le", size, 1.0), value, math.nan)
    return m.copysign(value, x)
