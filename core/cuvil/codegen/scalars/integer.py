"""Integer division, remainders, powers and shifts: nothing traps, nothing is undefined."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.codegen.scalars.registry import emitter

_INTS = ("int", "uint")


def _safe_divisor(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """`b`, or 1 where dividing by it would trap (0, and -1 under the lowest value)."""
    bad = m.compare("eq", b, 0)
    if m.dtype.kind == "int":
        lowest = m.compare("eq", a, -(2 ** (m.width - 1)))
        bad = m.b.or_(bad, m.b.and_(lowest, m.compare("eq", b, -1)))
    return m.select(bad, 1, b)


@emitter("div", kinds=_INTS)
def _div(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Truncates toward zero; x / 0 is 0, lowest / -1 is lowest."""
    divide = m.b.sdiv if m.dtype.kind == "int" else m.b.udiv
    quotient = divide(a, _safe_divisor(m, a, b))
    return m.select(m.compare("eq", b, 0), 0, quotient)


@emitter("fmod", kinds=_INTS)
def _fmod(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The sign of `a`; x fmod 0 is 0, as the remainder by 1 is."""
    remainder = m.b.srem if m.dtype.kind == "int" else m.b.urem
    return remainder(a, _safe_divisor(m, a, b))


@emitter("mod", kinds=_INTS)
def _mod(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The sign of `b`; x mod 0 is 0."""
    rest = _fmod(m, a, b)
    if m.dtype.kind == "uint":
        return rest
    differs = m.compare("lt", m.b.xor(rest, b), 0)
    wrong = m.b.and_(m.compare("ne", rest, 0), differs)
    return m.add(rest, m.select(wrong, b, 0))


@emitter("pow", kinds=_INTS)
def _pow(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Wraps; a negative exponent gives 1 / a**n truncated, and 0 for a = 0."""
    signed = m.dtype.kind == "int"
    value, square = m.constant(1), a
    for bit in range(m.width - signed):
        has = m.compare("ne", m.b.and_(b, m.constant(1 << bit)), 0)
        value = m.select(has, m.mul(value, square), value)
        square = m.mul(square, square)
    if not signed:
        return value
    odd = m.compare("ne", m.b.and_(b, m.constant(1)), 0)
    inverse = m.select(m.compare("eq", a, 1), 1, 0)
    inverse = m.select(m.compare("eq", a, -1), m.select(odd, -1, 1), inverse)
    return m.select(m.compare("lt", b, 0), inverse, value)


def _amount(m: MathBuilder, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(an amount below the width, whether `b` is outside [0, width))."""
    outside = m.b.icmp_unsigned(">=", b, m.constant(m.width))
    return m.select(outside, 0, b), outside


@emitter("shift_left", kinds=_INTS)
def _shift_left(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    amount, outside = _amount(m, b)
    return m.select(outside, 0, m.b.shl(a, amount))


@emitter("shift_right", kinds=_INTS)
def _shift_right(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    amount, outside = _amount(m, b)
    if m.dtype.kind == "uint":
        return m.select(outside, 0, m.b.lshr(a, amount))
    return m.b.ashr(a, m.select(outside, m.width - 1, amount))
