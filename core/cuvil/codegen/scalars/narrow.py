"""Narrow types between memory (the low bits of an i8) and registers (f32, or i8 for integers).

Integer arithmetic and one exact float operation each way, branch-free. A float format is a row of
`FORMATS`: sign, exponent and fraction from the top; float8 e8m0 is an exponent alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen.llvm_util import I8
from cuvil.codegen.scalars.math_builder import MathBuilder, lanes_of, like
from cuvil.ir.dtypes import DType, dtype

__all__ = ["from_narrow", "masked", "to_narrow", "widened"]

_INF = 0x7F800000  # of f32
_NORMAL = 0x800000  # the least normal f32
_LEAST = 0x400000  # 2 ** -127, which is a denormal


@dataclass(frozen=True)
class Format:
    """A narrow float: its fields, and the codes (without sign) of what is special.

    `largest` is the code of the largest finite value, `nan` that of a NaN; above lie `inf`, where
    the format has it, and the other NaNs. Without a `nan` it becomes zero. `one_zero`: the code
    of minus zero is the only NaN instead.
    """

    fraction: int
    bias: int
    largest: int
    nan: int | None = None
    inf: int | None = None
    one_zero: bool = False

    @property
    def sign(self) -> int:
        """The sign's bit; the codes without it lie below."""
        return 1 << self.largest.bit_length()

    @property
    def over(self) -> int:
        """The code of what is too large and not saturated."""
        return next((c for c in (self.inf, self.nan) if c is not None), self.largest)


FORMATS = {
    "f8e4m3fn": Format(3, 7, 0x7E, nan=0x7F),
    "f8e4m3fnuz": Format(3, 8, 0x7F, nan=0x80, one_zero=True),
    "f8e5m2": Format(2, 15, 0x7B, nan=0x7E, inf=0x7C),
    "f8e5m2fnuz": Format(2, 16, 0x7F, nan=0x80, one_zero=True),
    "f4e2m1": Format(1, 1, 0x7),
}


def from_narrow(b: ir.IRBuilder, value: ir.Value, kind: DType) -> ir.Value:
    """The element (i8, scalar or vector) as `kind.compute`; bits above the value's are ignored."""
    if kind.is_integer:
        spare = _constant(b, value, 8 - kind.value_bits)
        shift = b.ashr if kind.is_signed else b.lshr
        return shift(b.shl(value, spare), spare)
    m = MathBuilder(b, dtype("f32"), lanes_of(value), None)
    code = b.zext(value, m.bits_type)
    return _from_e8m0(m, code) if kind.name == "f8e8m0" else _from(m, code, FORMATS[kind.name])


def to_narrow(
    b: ir.IRBuilder, value: ir.Value, kind: DType, saturate: int = 1, round_mode: str = "up"
) -> ir.Value:
    """A value of `kind.compute` as it lies in memory; see `cuvil.ops.narrow_meaning`.

    Integers wrap.
    """
    if kind.is_integer:
        return masked(b, value, kind)
    m = MathBuilder(b, dtype("f32"), lanes_of(value), None)
    if kind.name == "f8e8m0":
        code = _to_e8m0(m, value, bool(saturate), round_mode)
    else:
        code = _to(m, value, FORMATS[kind.name], bool(saturate))
    return b.trunc(code, like(value, I8))


def masked(b: ir.IRBuilder, value: ir.Value, kind: DType) -> ir.Value:
    """An i8 with the bits above the value's cleared."""
    return b.and_(value, _constant(b, value, 2**kind.value_bits - 1))


def _constant(b: ir.IRBuilder, value: ir.Value, number: int) -> ir.Constant:
    return MathBuilder(b, dtype("u8"), lanes_of(value), None).constant(number)


def _from(m: MathBuilder, code: ir.Value, f: Format) -> ir.Value:
    b, n = m.b, m.bits_value
    size = b.and_(code, n(f.sign - 1))
    bits = m.bits(widened(m, size, f.fraction, f.bias))
    if f.inf is not None:
        bits = b.select(b.icmp_unsigned("==", size, n(f.inf)), n(_INF), bits)
    if f.one_zero:
        nan = b.icmp_unsigned("==", code, n(f.sign))
        bits = b.select(nan, n(_INF + _LEAST), bits)
    elif f.nan is not None:
        nan = b.icmp_unsigned(">", size, n(f.largest if f.inf is None else f.inf))
        bits = b.select(nan, n(_INF + _LEAST), bits)
    sign = b.and_(code, n(f.sign))
    return m.from_bits(b.or_(bits, m.shl(sign, 32 - f.sign.bit_length())))


def widened(m: MathBuilder, size: ir.Value, fraction: int, bias: int) -> ir.Value:
    """The f32 of a finite `size`: exponent and fraction of a narrower float, without its sign.

    No denormal f32 on the way, since kernels run with those flushed to zero.
    """
    placed = m.shl(size, 23 - fraction)
    normal = m.b.add(placed, m.bits_value((127 - bias) << 23))
    # With the exponent of the least normal number, a denormal is one beyond it by its fraction.
    least = m.bits_value((128 - bias) << 23)
    tiny = m.exact_sub(m.from_bits(m.b.add(placed, least)), m.from_bits(least))
    is_normal = m.b.icmp_unsigned(">=", size, m.bits_value(1 << fraction))
    return m.b.select(is_normal, m.from_bits(normal), tiny)


def _to(m: MathBuilder, value: ir.Value, f: Format, saturate: bool) -> ir.Value:
    b, n = m.b, m.bits_value
    bits = m.bits(value)
    size = b.and_(bits, n(0x7FFFFFFF))
    sign = b.and_(b.lshr(bits, n(32 - f.sign.bit_length())), n(f.sign))
    drop = 23 - f.fraction
    odd = b.and_(b.lshr(size, n(drop)), n(1))
    rebias = (1 << (drop - 1)) - 1 - ((127 - f.bias) << 23)
    normal = b.lshr(b.add(b.add(size, odd), n(rebias)), n(drop))
    # Adding this puts the last place of a denormal into the last place of the float.
    magic = (128 - f.bias + drop) << 23
    tiny = b.sub(m.bits(m.exact_add(m.from_bits(size), m.from_bits(n(magic)))), n(magic))
    code = b.select(b.icmp_unsigned("<", size, n((128 - f.bias) << 23)), tiny, normal)
    over = f.largest if saturate else f.over
    code = b.select(b.icmp_unsigned(">", code, n(f.largest)), n(over), code)
    nan = b.icmp_unsigned(">", size, n(_INF))
    code = b.select(nan, n(f.nan or 0), code)
    signed = b.or_(code, sign)
    if not f.one_zero:
        return signed
    return b.select(b.icmp_unsigned("==", b.and_(code, n(f.sign - 1)), n(0)), code, signed)


def _from_e8m0(m: MathBuilder, code: ir.Value) -> ir.Value:
    b, n = m.b, m.bits_value
    bits = b.select(b.icmp_unsigned("==", code, n(0)), n(_LEAST), m.shl(code, 23))
    nan = b.icmp_unsigned("==", code, n(255))
    return m.from_bits(b.select(nan, n(_INF + _LEAST), bits))


def _to_e8m0(m: MathBuilder, value: ir.Value, saturate: bool, round_mode: str) -> ir.Value:
    b, n = m.b, m.bits_value
    size = b.and_(m.bits(value), n(0x7FFFFFFF))
    step = {"up": _NORMAL - 1, "down": 0, "nearest": _NORMAL // 2}[round_mode]
    middle = {"up": _LEAST + 1, "down": _NORMAL, "nearest": _LEAST * 3 // 2}[round_mode]
    code = b.lshr(b.add(size, n(step)), n(23))
    tiny = b.zext(b.icmp_unsigned(">=", size, n(middle)), m.bits_type)
    code = b.select(b.icmp_unsigned("<", size, n(_NORMAL)), tiny, code)
    most = n(254 if saturate else 255)
    code = b.select(b.icmp_unsigned(">", code, most), most, code)
    bad = b.icmp_unsigned(">", size, n(_INF))
    if not saturate:
        bad = b.or_(bad, b.icmp_unsigned("<", size, n(_LEAST)))
    return b.select(bad, n(255), code)
