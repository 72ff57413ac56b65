"""Numpy meanings of the scalar functions whose semantics numpy does not give directly.

Every function takes arrays of one dtype (float16 and bfloat16 arrive as float32) and broadcasts.
Nothing raises on a value: division by zero, overflow and bad shifts have defined results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ir.dtypes import from_numpy
from cuvil.ops.narrow_meaning import to_narrow

__all__ = [
    "bitcast",
    "cast",
    "cast_narrow",
    "div",
    "fake_quantize",
    "fmod",
    "isinf",
    "mod",
    "power",
    "quantize",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right",
    "sigmoid",
]

Array = np.ndarray[Any, Any]


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def _safe_divisor(b: Array) -> Array:
    """`b` with the two divisors that overflow or trap, 0 and -1, replaced by 1."""
    bad = (b == 0) | (b == -1) if b.dtype.kind == "i" else b == 0
    return np.where(bad, np.ones_like(b), b)


def fmod(a: Array, b: Array) -> Array:
    """C remainder: the sign is that of `a`. Integers: x fmod 0 is 0."""
    return np.fmod(a, _safe_divisor(b)) if _is_integer(a) else np.fmod(a, b)


def mod(a: Array, b: Array) -> Array:
    """Python remainder: the sign is that of `b`. Integers: x mod 0 is 0."""
    return np.mod(a, _safe_divisor(b)) if _is_integer(a) else np.mod(a, b)


def div(a: Array, b: Array) -> Array:
    """Float: IEEE. Integers truncate toward zero; x / 0 is 0 and MIN / -1 is MIN."""
    if not _is_integer(a):
        return np.true_divide(a, b)
    divisor = _safe_divisor(b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    if b.dtype.kind == "i":
        quotient = np.where(b == -1, np.negative(a), quotient)
    return np.where(b == 0, np.zeros_like(quotient), quotient)


def power(a: Array, b: Array) -> Array:
    """IEEE pow; integers wrap, and a negative exponent truncates 1 / a**n toward zero."""
    if _is_integer(a):
        return _integer_power(a, b)
    return np.asarray(np.float_power(a, b)).astype(a.dtype)  # np.power(-inf, 0.5) is NaN


def _integer_power(a: Array, b: Array) -> Array:
    base, exponent = (x.copy() for x in np.broadcast_arrays(a, b))
    one, zero = np.ones_like(base), np.zeros_like(base)
    inverse = np.where(base == 1, one, zero)
    if a.dtype.kind == "i":
        inverse = np.where(base == -1, np.where(exponent & 1 != 0, base, one), inverse)
    negative = exponent < 0
    value = one.copy()
    for _ in range(8 * a.dtype.itemsize):
        value = np.where(exponent & 1 != 0, value * base, value)
        base = base * base
        exponent = exponent >> 1
    return np.where(negative, inverse, value)


def _shift_amount(b: Array, bits: int) -> tuple[Array, Array]:
    """(amount held within the width, whether the amount lies outside it)."""
    outside = (b < 0) | (b >= bits)
    return np.where(outside, np.zeros_like(b), b), outside


def shift_left(a: Array, b: Array) -> Array:
    """`a << b`; an amount outside [0, width) gives 0."""
    amount, outside = _shift_amount(b, 8 * a.dtype.itemsize)
    shifted = np.left_shift(a, amount)
    return np.where(outside, np.zeros_like(shifted), shifted)


def shift_right(a: Array, b: Array) -> Array:
    """`a >> b`, arithmetic when signed; an amount outside [0, width) gives 0, or -1 below 0."""
    amount, outside = _shift_amount(b, 8 * a.dtype.itemsize)
    shifted = np.right_shift(a, amount)
    return np.where(outside, np.where(a < 0, ~np.zeros_like(a), np.zeros_like(a)), shifted)


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    return np.true_divide(x.dtype.type(1), np.sqrt(x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow: e**x / (1 + e**x) below zero."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, np.ones_like(e)) / (1 + e))


def isinf(x: Array, detect_negative: int, detect_positive: int) -> Array:
    """Whether x is one of the infinities asked for."""
    positive = (x == np.inf) if detect_positive else np.zeros(x.shape, bool)
    return np.asarray(positive | (x == -np.inf) if detect_negative else positive)


def select(condition: Array, a: Array, b: Array) -> Array:
    """`a` where the condition holds, else `b`."""
    return np.where(condition, a, b)


def bitcast(x: Array, of: str, to: str) -> Array:
    """The bits of `x`, an `of` element, as an element of type `to` of the same width."""
    source, target = dtype_of(of), dtype_of(to)
    bits = np.array(x, source.numpy, order="C").view(f"u{source.size}")
    if target.value_bits < target.bits:
        bits &= np.uint8(2**target.value_bits - 1)
    return np.asarray(bits != 0 if target.kind == "bool" else bits.view(target.numpy))


def cast(x: Array, to: str) -> Array:
    """`x` as element type `to`.

    To bool: x != 0 (so NaN is true). Float to integer truncates toward zero, saturates, and takes
    NaN to 0. Integer to narrower integer wraps. To float rounds to nearest even; integers and
    float64 go to bfloat16 by way of float32. To narrow types: see `to_narrow`.
    """
    target = dtype_of(to)
    source = from_numpy(x.dtype)
    if target.kind == "bool":
        return np.asarray(x != 0)
    if target.is_narrow:
        return cast_narrow(x, to, 1, "up")
    if source.is_float and target.is_integer:
        return _saturate(x.astype(np.float64), target.numpy)
    if target.name == "bf16":
        return np.asarray(x.astype(np.float32).astype(target.numpy))
    return np.asarray(x.astype(target.numpy))


def quantize(x: Array, zero: Array, to: str) -> Array:
    """round(x) + zero, ties to even, saturated to u8, i8, u16 or i16, where `zero` is one of these;
    the lowest for NaN."""
    lowest, highest = np.iinfo(dtype_of(to).numpy).min, np.iinfo(dtype_of(to).numpy).max
    code = np.rint(x) + zero
    held = np.where(code > lowest, np.minimum(code, np.float32(highest)), np.float32(lowest))
    return np.asarray(held.astype(dtype_of(to).numpy))


def fake_quantize(x: Array, zero: Array, to: str) -> Array:
    """quantize(x, zero) - zero, as a float."""
    return np.asarray(quantize(x, zero, to).astype(np.float32) - zero)


def cast_narrow(x: Array, to: str, saturate: int, round_mode: str) -> Array:
    """As `cast`, to a narrow type, with the attributes of ONNX's Cast."""
    target = dtype_of(to)
    if target.is_integer and from_numpy(x.dtype).is_float:
        x = _saturate(x.astype(np.float64), np.dtype(np.int32))
    return to_narrow(x, target, bool(saturate), round_mode)


def _saturate(x: Array, target: np.dtype[Any]) -> Array:
    limits = np.iinfo(target)
    whole = np.trunc(np.where(np.isnan(x), 0.0, x))
    low, high = whole <= float(limits.min), whole >= float(limits.max)
    value = np.where(low | high, 0.0, whole).astype(target)
    value = np.where(low, target.type(limits.min), value)
    return np.where(high, target.type(limits.max), value)
