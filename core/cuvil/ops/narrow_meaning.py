"""Numpy meanings of casts to narrow types, as the ONNX operator Cast defines them.

ml_dtypes rounds as ONNX asks, but saturates nothing and knows one rounding of float8 e8m0.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from cuvil.ir.dtypes import DType

__all__ = ["ROUND_MODES", "to_narrow"]

Array = np.ndarray[Any, Any]

ROUND_MODES = ("up", "down", "nearest")
_LEAST = 0x400000  # 2 ** -127, the least value of e8m0, as the bits of a denormal float32
_NORMAL = 0x800000


def to_narrow(x: Array, target: DType, saturate: bool = True, round_mode: str = "up") -> Array:
    """`x` (bool, integers or floats) as narrow type `target`.

    Integers wrap. All else becomes float32 first, as in ml_dtypes, and rounds to nearest even;
    what is too large becomes the largest value where `saturate` (infinities as well), else
    infinity or NaN; f4e2m1, which has neither, always saturates, and NaN is its zero.
    `round_mode` (of ROUND_MODES, ties up) and `saturate` of e8m0: see `_to_e8m0`.
    """
    if target.is_integer:
        bits = x.astype(np.int64) & (2**target.value_bits - 1)
        return np.asarray(bits.astype(np.uint8).view(target.numpy))
    x = x.astype(np.float32)
    if target.name == "f8e8m0":
        return _to_e8m0(x, saturate, round_mode).view(target.numpy)
    if saturate:
        limits = ml_dtypes.finfo(target.numpy)
        x = np.clip(x, np.float32(limits.min), np.float32(limits.max))
    return np.asarray(x.astype(target.numpy))


def _to_e8m0(x: Array, saturate: bool, round_mode: str) -> Array:
    """The codes of the powers of two that |x| (float32) rounds to: no value has a sign.

    Beyond the ends, infinity included, the largest or the smallest value where `saturate`, else
    NaN.
    """
    bits = np.asarray(np.abs(x)).view(np.uint32)
    step = {"up": _NORMAL - 1, "down": 0, "nearest": _NORMAL // 2}[round_mode]
    code = (bits + np.uint32(step)) >> 23
    # Denormals lie above or at a power of two whose code is 0.
    middle = {"up": _LEAST + 1, "down": _NORMAL, "nearest": _LEAST * 3 // 2}[round_mode]
    code = np.where(bits < _NORMAL, bits >= middle, code)
    code = np.minimum(code, 254 if saturate else 255)
    bad = bits > 0x7F800000 if saturate else (bits > 0x7F800000) | (bits < _LEAST)
    return np.asarray(np.where(bad, 255, code).astype(np.uint8))
