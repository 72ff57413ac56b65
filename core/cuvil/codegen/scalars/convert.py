"""Conversions between element types, and between memory and registers.

Values of f16 and bf16 are their 16 bits (i16) and become f32 to be computed with. Without a fact
that says the target converts by itself everything is integer arithmetic, exact for denormals,
infinities and NaN, rounding to nearest even. Narrow types: see `narrow`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from cuvil.codegen.llvm_util import F32, HALF, I1, I8, I16, bf16_to_f32, declare, mangled
from cuvil.codegen.llvm_util import f32_to_bf16 as to_bf16_bits
from cuvil.codegen.scalars.math_builder import MathBuilder, fact, like
from cuvil.codegen.scalars.narrow import from_narrow, masked, to_narrow, widened
from cuvil.codegen.scalars.registry import emitter
from cuvil.ir.dtypes import DType, dtype

__all__ = ["load_convert", "storage_type", "store_convert", "value_type"]

_ALL = ("bool", "int", "uint", "float")
_PLACE_OF_ONE = 1.5 * 2.0**23  # floats around it are whole, and their lowest bits are 0 here


def storage_type(kind: DType | str) -> ir.Type:
    """The IR type of one element in memory: i8 for bool and narrow types, i16 for f16 and bf16."""
    row = dtype(kind)
    if row.kind == "bool" or row.compute is not row:
        return ir.IntType(row.bits)
    return value_type(row)


def value_type(kind: DType | str) -> ir.Type:
    """The IR type arithmetic is done in: i1 for bool, float for f16, bf16 and narrow floats."""
    row = dtype(kind)
    if row.kind == "bool":
        return I1
    if row.is_float:
        return ir.DoubleType() if row.name == "f64" else F32
    return ir.IntType(row.bits)


def load_convert(
    b: ir.IRBuilder, value: ir.Value, kind: DType | str, facts: object = None
) -> ir.Value:
    """A value as it lies in memory (scalar or vector) as one to compute with."""
    name = dtype(kind).name
    if dtype(kind).is_narrow:
        return from_narrow(b, value, dtype(kind))
    if name == "bool":
        return b.icmp_unsigned("!=", value, ir.Constant(value.type, None))
    if name == "bf16":
        return bf16_to_f32(b, value)
    if name == "f16":
        return _half_to_f32(b, value, facts)
    return value


def store_convert(
    b: ir.IRBuilder, value: ir.Value, kind: DType | str, facts: object = None
) -> ir.Value:
    """A computed value (scalar or vector) as it lies in memory; floats round to nearest even."""
    name = dtype(kind).name
    if dtype(kind).is_narrow:
        return to_narrow(b, value, dtype(kind))
    if name == "bool":
        return b.zext(value, like(value, I8))
    if name == "bf16":
        return to_bf16_bits(b, value)
    if name == "f16":
        return _f32_to_half(b, value, facts)
    return value


def _half_to_f32(b: ir.IRBuilder, value: ir.Value, facts: object) -> ir.Value:
    if fact(facts, "half"):
        return b.fpext(b.bitcast(value, like(value, HALF)), like(value, F32))
    m = _f32_builder(b, value, facts)
    wide = b.zext(value, m.bits_type)
    size = b.and_(wide, m.bits_value(0x7FFF))
    bits = m.bits(widened(m, size, 10, 15))
    special = b.icmp_unsigned(">=", size, m.bits_value(0x7C00))
    bits = b.select(special, b.or_(m.shl(size, 13), m.bits_value(0x7F800000)), bits)
    return m.from_bits(b.or_(bits, m.shl(b.and_(wide, m.bits_value(0x8000)), 16)))


def _f32_to_half(b: ir.IRBuilder, value: ir.Value, facts: object) -> ir.Value:
    if fact(facts, "half"):
        return b.bitcast(b.fptrunc(value, like(value, HALF)), like(value, I16))
    m = _f32_builder(b, value, facts)
    n = m.bits_value
    bits = m.bits(value)
    size = b.and_(bits, n(0x7FFFFFFF))
    sign = b.lshr(b.xor(bits, size), n(16))
    odd = b.and_(b.lshr(size, n(13)), n(1))
    normal = b.lshr(b.add(b.add(size, odd), n(0xFFF - (112 << 23))), n(13))
    # Adding 1/2 puts the last place of a half denormal into the last place of the float.
    tiny = b.sub(m.bits(m.exact_add(m.from_bits(size), 0.5)), n(0x3F000000))
    half = b.select(b.icmp_unsigned("<", size, n(0x38800000)), tiny, normal)
    nan = b.icmp_unsigned(">", size, n(0x7F800000))
    huge = b.icmp_unsigned(">=", size, n(0x47800000))
    half = b.select(huge, b.select(nan, n(0x7E00), n(0x7C00)), half)
    return b.trunc(b.or_(half, sign), like(value, I16))


def _f32_builder(b: ir.IRBuilder, value: ir.Value, facts: object) -> MathBuilder:
    lanes = value.type.count if isinstance(value.type, ir.VectorType) else 1
    return MathBuilder(b, dtype("f32"), lanes, facts)


@emitter("cast", kinds=_ALL)
def _cast(m: MathBuilder, x: ir.Value, to: str) -> ir.Value:
    """From the type computed in to `to`; f16, bf16 and narrow types come out as their bits."""
    target = dtype(to)
    if target.kind == "bool":
        return m.compare("ne", x, 0) if m.dtype.kind != "bool" else x
    return store_convert(m.b, _computed(m, x, target), target, m.facts)


@emitter("cast_narrow", kinds=_ALL)
def _cast_narrow(m: MathBuilder, x: ir.Value, to: str, saturate: int, round_mode: str) -> ir.Value:
    """As `cast`, with the attributes of ONNX's Cast."""
    target = dtype(to)
    return to_narrow(m.b, _computed(m, x, target), target, saturate, round_mode)


@emitter("quantize")
def _quantize(m: MathBuilder, x: ir.Value, zero: ir.Value, to: str) -> ir.Value:
    kind = like(x, ir.IntType(dtype(to).bits))
    offset = m.b.fptosi(zero, like(x, ir.IntType(32)))
    code = m.b.trunc(m.bits(_whole(m, x, zero, to)), kind)
    return m.b.add(code, m.b.trunc(offset, kind))


@emitter("fake_quantize")
def _fake_quantize(m: MathBuilder, x: ir.Value, zero: ir.Value, to: str) -> ir.Value:
    return m.exact_sub(_whole(m, x, zero, to), _PLACE_OF_ONE)


def _whole(m: MathBuilder, x: ir.Value, zero: ir.Value, to: str) -> ir.Value:
    """x rounded and held within the limits of `to` less zero, plus a number by which its lowest
    bits are those of the integer.

    The sum rounds. Beyond 2**22 it does so elsewhere, but does not come back within the limits.
    """
    limits = np.iinfo(dtype(to).numpy)
    total = m.add(x, _PLACE_OF_ONE)
    low = m.exact_sub(_PLACE_OF_ONE + int(limits.min), zero)
    high = m.exact_sub(_PLACE_OF_ONE + int(limits.max), zero)
    held = m.select(m.compare("gt", total, low), total, low)  # NaN is low
    return m.select(m.compare("lt", held, high), held, high)


@emitter("bitcast", kinds=_ALL)
def _bitcast(m: MathBuilder, x: ir.Value, of: str, to: str) -> ir.Value:
    """The bits of x, which is an `of` or its bits, as a `to`, stored types as their bits."""
    source, target = dtype(of), dtype(to)
    bits = ir.IntType(source.bits)
    stored = x if x.type == like(x, bits) else store_convert(m.b, x, source, m.facts)
    if target.kind == "bool":
        raw = m.b.bitcast(stored, like(stored, bits))
        return m.b.icmp_unsigned("!=", raw, ir.Constant(raw.type, None))
    result = m.b.bitcast(stored, like(stored, storage_type(target)))
    return masked(m.b, result, target) if target.value_bits < target.bits else result


def _computed(m: MathBuilder, x: ir.Value, target: DType) -> ir.Value:
    """`x` as `target.compute`; floats become narrow integers by way of i32."""
    if m.is_float and target.is_narrow and target.is_integer:
        wide = m.at(dtype("i32"))
        return _convert(wide, _convert(m, x, wide, False), m.at(target.compute), False)
    return _convert(m, x, m.at(target.compute), narrowing=target.name == "f16")


def _convert(m: MathBuilder, x: ir.Value, target: MathBuilder, narrowing: bool) -> ir.Value:
    if m.is_float and target.is_float:
        return _float_to_float(m, x, target, narrowing)
    if m.is_float:
        return _float_to_integer(m, x, target)
    if target.is_float:
        signed = m.dtype.kind == "int"
        return (m.b.sitofp if signed else m.b.uitofp)(x, target.type)
    if target.width <= m.width:
        return x if target.width == m.width else m.b.trunc(x, target.type)
    return (m.b.sext if m.dtype.kind == "int" else m.b.zext)(x, target.type)


def _float_to_float(m: MathBuilder, x: ir.Value, target: MathBuilder, narrowing: bool) -> ir.Value:
    if m.width == target.width:
        return x
    if target.is_double:
        return m.b.fpext(x, target.type)
    value = m.b.fptrunc(x, target.type)
    return _round_to_odd(m, x, target, value) if narrowing else value


def _float_to_short(m: MathBuilder, x: ir.Value, target: MathBuilder) -> ir.Value:
    """By way of i32, which vectors convert to: LLVM's saturating intrinsic takes lane by lane."""
    limits = np.iinfo(target.dtype.numpy)
    held = m.at_least(m.at_most(x, float(limits.max)), float(limits.min))
    number = m.select(m.is_nan(x), 0.0, held)
    return m.b.trunc(m.b.fptosi(number, like(x, ir.IntType(32))), target.type)


def _round_to_odd(m: MathBuilder, x: ir.Value, target: MathBuilder, nearest: ir.Value) -> ir.Value:
    """f64 to f32 so that one more rounding, to f16, gives what a direct one would."""
    b = m.b
    back = b.fpext(nearest, m.type)
    bits = target.bits(nearest)
    above = m.compare("gt", m.abs(back), m.abs(x))
    bits = b.select(above, b.sub(bits, target.bits_value(1)), bits)
    inexact = b.and_(m.compare("ne", back, x), b.not_(m.is_nan(x)))
    return target.from_bits(b.or_(bits, b.zext(inexact, target.bits_type)))


def _float_to_integer(m: MathBuilder, x: ir.Value, target: MathBuilder) -> ir.Value:
    """Towards zero; what is too large becomes the greatest or least integer, NaN zero."""
    if target.width < 32:
        return _float_to_short(m, x, target)
    signed = "s" if target.dtype.kind == "int" else "u"
    name = f"llvm.fpto{signed}i.sat.{mangled(target.type)}.{mangled(m.type)}"
    return m.b.call(declare(m.b.module, name, target.type, [m.type]), [x])
