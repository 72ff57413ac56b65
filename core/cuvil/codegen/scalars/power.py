"""pow of floats, and the remainders of floats.

f32 powers are computed in double precision. f64 powers carry the logarithm in two doubles.
"""

from __future__ import annotations

import math

from llvmlite import ir

from cuvil.codegen.scalars.exponential import exp_minus_1_reduced, reduce_exponent
from cuvil.codegen.scalars.logarithm import LN2_F64, LOG_F64, log_of, split
from cuvil.codegen.scalars.math_builder import MathBuilder, fact
from cuvil.codegen.scalars.registry import emitter
from cuvil.ir.dtypes import dtype

_Pair = tuple[ir.Value, ir.Value]  # an unevaluated sum, the second much smaller


@emitter("pow")
def _pow(m: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """IEEE pow; small constant exponents are multiplications."""
    if (short := _constant_power(m, x, y)) is not None:
        return short
    size = m.abs(x)
    value = _size_power(m, size, y)
    return _with_special(m, value, x, y)


def _constant_power(m: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value | None:
    exponent = _constant(y)
    if exponent in (2.0, 3.0, 4.0):
        square = m.mul(x, x)
        return square if exponent == 2.0 else m.mul(square, x if exponent == 3.0 else square)
    if exponent == 0.5:  # unlike sqrt: pow(-0, 0.5) is 0, pow(-inf, 0.5) is inf
        root = m.sqrt(m.exact_add(x, 0.0))
        return m.select(m.compare("eq", x, -math.inf), math.inf, root)
    return {0.0: m.value(1.0), 1.0: x}.get(exponent) if exponent is not None else None


def _constant(y: ir.Value) -> float | None:
    """The number of a constant operand, the same in every lane."""
    if not isinstance(y, ir.Constant):
        return None
    number = y.constant
    if isinstance(number, list | tuple):
        if len({getattr(n, "constant", n) for n in number}) != 1:
            return None
        number = getattr(number[0], "constant", number[0])
    return float(number) if isinstance(number, int | float) else None


def _size_power(m: MathBuilder, size: ir.Value, y: ir.Value) -> ir.Value:
    """size**y of a positive size, wrong where size is 0, 1 or infinite or y is infinite."""
    if m.is_double:
        return _power_double(m, size, y)
    d = m.at(dtype("f64"))
    wide, exponent = m.b.fpext(size, d.type), m.b.fpext(y, d.type)
    value = _exp_pair(d, d.exact_mul(log_of(d, wide), exponent), None)
    return m.b.fptrunc(value, m.type)


def _with_special(m: MathBuilder, value: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    b, size, y_size = m.b, m.abs(x), m.abs(y)
    rising = b.xor(m.compare("gt", size, 1.0), m.compare("lt", y, 0.0))
    extreme = b.or_(
        b.or_(m.compare("eq", size, 0.0), m.compare("eq", size, math.inf)),
        m.compare("eq", y_size, math.inf),
    )
    value = m.select(extreme, m.select(rising, math.inf, 0.0), value)
    value = m.select(m.compare("eq", size, 1.0), 1.0, value)
    value = m.select(b.or_(m.is_nan(x), m.is_nan(y)), math.nan, value)
    whole, odd = _parity(m, y_size)
    negative = m.compare("lt", m.copysign(1.0, x), 0.0)
    value = m.select(b.and_(negative, odd), m.neg(value), value)
    finite_negative = b.and_(m.compare("lt", x, 0.0), m.compare("gt", x, -math.inf))
    value = m.select(b.and_(finite_negative, b.not_(whole)), math.nan, value)
    one = b.or_(m.compare("eq", y, 0.0), m.compare("eq", x, 1.0))
    return m.select(one, 1.0, value)


def _parity(m: MathBuilder, size: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(size is a whole number, and an odd one); from 2^mantissa on whole, one further even."""
    limit = 2.0**52 if m.is_double else 2.0**23
    below = m.compare("lt", size, limit)
    moved = m.exact_add(size, limit)
    whole = m.b.or_(m.b.not_(below), m.compare("eq", m.exact_sub(moved, limit), size))
    # The last place of size + limit, or of size itself up to twice the limit, is the parity.
    bits = m.b.and_(m.bits(m.select(below, moved, size)), m.bits_value(1))
    set_bit = m.b.icmp_unsigned("!=", bits, m.bits_value(0))
    small = m.compare("lt", size, 2 * limit)
    return whole, m.b.and_(m.b.and_(whole, small), set_bit)


def _power_double(m: MathBuilder, size: ir.Value, y: ir.Value) -> ir.Value:
    high, low = _log_pair(m, size)
    y = m.clamp(y, -(2.0**66), 2.0**66)  # beyond that only size = 1 is not 0 or infinite
    product, error = _two_product(m, high, y)
    return _exp_pair(m, product, m.fma(low, y, error))


def _exp_pair(m: MathBuilder, x: ir.Value, low: ir.Value | None) -> ir.Value:
    """e**(x + low)."""
    limited = m.clamp(x, -746.0, 711.0)
    r, scale = reduce_exponent(m, limited)
    value = exp_minus_1_reduced(m, r)
    if low is not None:
        inside = m.compare("eq", limited, x)
        low = m.select(inside, low, 0.0)
        value = m.fma(low, m.exact_add(value, 1.0), value)
    return m.exact_mul(m.exact_mul(m.exact_add(value, 1.0), scale), scale)


def _log_pair(m: MathBuilder, x: ir.Value) -> _Pair:
    """log of a positive finite x to about 2^-62: k ln 2 + 2 s + s * R(s*s), s in two doubles."""
    k, one_f = split(m, x)
    f = m.exact_sub(one_f, 1.0)
    below = m.exact_add(one_f, 1.0)
    below_low = m.exact_sub(one_f, m.exact_sub(below, 1.0))
    s = m.div(f, below)
    product, error = _two_product(m, s, below)
    rest = m.exact_sub(m.exact_sub(f, product), error)
    s_low = m.div(m.exact_sub(rest, m.exact_mul(s, below_low)), below)
    z, z_low = _two_product(m, s, s)
    z_low = m.fma(m.exact_mul(s, 2.0), s_low, z_low)
    # s * z * 2/3 in two doubles: the rest of the series is 60 times smaller still.
    cube, cube_low = _two_product(m, s, z)
    cube_low = m.fma(s, z_low, m.fma(s_low, z, cube_low))
    third, third_low = _two_product(m, cube, 2 / 3)
    third_low = m.fma(cube_low, 2 / 3, m.fma(cube, 3.700743415417188e-17, third_low))
    series = m.mul(m.mul(cube, z), m.polynomial(z, LOG_F64[1:]))
    high, low = _two_sum(m, m.exact_mul(k, LN2_F64[0]), m.exact_mul(s, 2.0))
    high, low_2 = _two_sum(m, high, third)
    small = m.add(m.fma(k, LN2_F64[1], series), m.fma(s_low, 2.0, third_low))
    total = m.exact_add(m.exact_add(low, low_2), small)
    result = m.exact_add(high, total)
    return result, m.exact_sub(total, m.exact_sub(result, high))


def _two_sum(m: MathBuilder, a: ir.Value, b: ir.Value) -> _Pair:
    """a + b exactly, as the rounded sum and its error."""
    total = m.exact_add(a, b)
    part = m.exact_sub(total, a)
    error = m.exact_add(m.exact_sub(a, m.exact_sub(total, part)), m.exact_sub(b, part))
    return total, error


def _two_product(m: MathBuilder, a: ir.Value, b: ir.Value | float) -> _Pair:
    """a * b exactly (barring underflow), as the rounded product and its error."""
    product = m.exact_mul(a, b)
    if fact(m.facts, "fma"):
        return product, m.fma(a, b, m.neg(product))
    (a1, a2), (b1, b2) = _halves(m, a), _halves(m, m.value(b))
    error = m.exact_sub(m.exact_mul(a1, b1), product)
    error = m.exact_add(m.exact_add(error, m.exact_mul(a1, b2)), m.exact_mul(a2, b1))
    return product, m.exact_add(error, m.exact_mul(a2, b2))


def _halves(m: MathBuilder, a: ir.Value) -> _Pair:
    """A double as a sum of two with 26 bits each."""
    moved = m.exact_mul(a, 2.0**27 + 1)
    high = m.exact_sub(moved, m.exact_sub(moved, a))
    return high, m.exact_sub(a, high)
