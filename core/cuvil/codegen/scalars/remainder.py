"""fmod and mod of floats: exact for every quotient, by integer division of the fractions.

A private function with a loop, called once per lane: the number of steps depends on the values.
"""

from __future__ import annotations

import math

from llvmlite import ir

from cuvil.codegen.llvm_util import I32
from cuvil.codegen.scalars.math_builder import MathBuilder
from cuvil.codegen.scalars.registry import emitter


@emitter("fmod")
def _fmod(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The sign of `a`; NaN for an infinite `a` or a zero `b`."""
    value = _by_lane(m, m.abs(a), m.abs(b))
    value = m.select(m.compare("eq", m.abs(b), math.inf), m.abs(a), value)
    bad = m.b.or_(m.compare("eq", b, 0.0), m.compare("eq", m.abs(a), math.inf))
    bad = m.b.or_(bad, m.b.or_(m.is_nan(a), m.is_nan(b)))
    return m.select(bad, math.nan, m.copysign(value, a))


@emitter("mod")
def _mod(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The sign of `b`, as Python has it."""
    rest = _fmod(m, a, b)
    differs = m.b.xor(m.compare("lt", rest, 0.0), m.compare("lt", b, 0.0))
    moved = m.select(differs, m.exact_add(rest, b), rest)
    return m.select(m.compare("eq", rest, 0.0), m.copysign(0.0, b), moved)


def _by_lane(m: MathBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    function = _function(m.b.module, m.is_double)
    if m.lanes == 1:
        return m.b.call(function, [a, b])
    result = ir.Constant(m.type, ir.Undefined)
    for lane in range(m.lanes):
        i = ir.Constant(I32, lane)
        args = [m.b.extract_element(x, i) for x in (a, b)]
        result = m.b.insert_element(result, m.b.call(function, args), i)
    return result


def _function(module: ir.Module, double: bool) -> ir.Function:
    """rest(a, b) of a >= 0 and finite b > 0; any number for other values."""
    name = f"cuvil.fmod.f{64 if double else 32}"
    if name in module.globals:
        return module.globals[name]
    number, bits = (ir.DoubleType(), 64) if double else (ir.FloatType(), 32)
    function = ir.Function(module, ir.FunctionType(number, [number, number]), name)
    function.linkage = "internal"
    for attribute in ("nounwind", "noinline"):
        function.attributes.add(attribute)
    _Division(function, bits, mantissa=52 if double else 23).emit()
    return function


class _Division:
    """rest = fraction(a) * 2**(exponent(a) - exponent(b)) mod fraction(b), a few bits a step."""

    def __init__(self, function: ir.Function, bits: int, mantissa: int) -> None:
        self.function = function
        self.integer, self.i64 = ir.IntType(bits), ir.IntType(64)
        self.number = function.ftype.return_type
        self.mantissa = mantissa
        self.b = ir.IRBuilder(function.append_basic_block("entry"))

    def _n(self, value: int) -> ir.Constant:
        return ir.Constant(self.i64, value)

    def emit(self) -> None:
        b = self.b
        (fa, ea), (fb, eb) = (self._parts(x) for x in self.function.args)
        # A zero divisor never reaches the result; dividing by 1 keeps it from trapping.
        fb = b.select(b.icmp_unsigned("==", fb, self._n(0)), self._n(1), fb)
        smaller, divide, loop, done = (
            b.append_basic_block(n) for n in ("smaller", "divide", "loop", "done")
        )
        b.cbranch(b.icmp_signed("<", ea, eb), smaller, divide)
        b.position_at_end(smaller)
        b.ret(self.function.args[0])
        b.position_at_end(divide)
        first, shifts = b.urem(fa, fb), b.sub(ea, eb)
        b.cbranch(b.icmp_signed(">", shifts, self._n(0)), loop, done)
        b.position_at_end(loop)
        last = self._loop(first, shifts, fb, divide, done)
        b.position_at_end(done)
        rest = b.phi(self.i64)
        rest.add_incoming(first, divide)
        rest.add_incoming(last, loop)
        b.ret(self._scaled(rest, eb))

    def _loop(
        self, first: ir.Value, shifts: ir.Value, fb: ir.Value, before: ir.Block, done: ir.Block
    ) -> ir.Value:
        b, loop = self.b, self.b.block
        rest, left = b.phi(self.i64), b.phi(self.i64)
        most = self._n(63 - self.mantissa)
        shift = b.select(b.icmp_signed("<", left, most), left, most)
        after, remaining = b.urem(b.shl(rest, shift), fb), b.sub(left, shift)
        for phi, start, value in ((rest, first, after), (left, shifts, remaining)):
            phi.add_incoming(start, before)
            phi.add_incoming(value, loop)
        b.cbranch(b.icmp_signed(">", remaining, self._n(0)), loop, done)
        return after

    def _parts(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """(fraction, exponent) of x >= 0: x = fraction * 2**(exponent - bias - mantissa)."""
        b, mantissa = self.b, self.mantissa
        bits = b.bitcast(x, self.integer)
        bits = bits if self.integer.width == 64 else b.zext(bits, self.i64)
        exponent = b.lshr(bits, self._n(mantissa))
        denormal = b.icmp_unsigned("==", exponent, self._n(0))
        hidden = b.select(denormal, self._n(0), self._n(1 << mantissa))
        fraction = b.or_(b.and_(bits, self._n((1 << mantissa) - 1)), hidden)
        return fraction, b.select(denormal, self._n(1), exponent)

    def _scaled(self, rest: ir.Value, exponent: ir.Value) -> ir.Value:
        """rest * 2**(exponent - bias - mantissa) by two exact multiplications."""
        b, bias = self.b, (1 << (self.integer.width - self.mantissa - 2)) - 1
        power = b.sub(exponent, self._n(bias + self.mantissa))
        half = b.ashr(power, self._n(1))
        value = b.sitofp(rest, self.number)
        for part in (half, b.sub(power, half)):
            bits = b.shl(b.add(part, self._n(bias)), self._n(self.mantissa))
            bits = bits if self.integer.width == 64 else b.trunc(bits, self.integer)
            value = b.fmul(value, b.bitcast(bits, self.number))
        return value
