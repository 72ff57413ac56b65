"""Quantize and dequantize: rounding, saturation, scales by tensor and by channel."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, make_op, rand

from cuvil.ir.dtypes import dtype


def test_rounds_half_to_even_and_saturates() -> None:
    x = np.float32([0.5, 1.5, -2.5, 300, -300, np.inf, np.nan])
    (got,) = check("quantize_linear", x, np.float32(1), to="i8")
    assert got.tolist() == [0, 2, -2, 127, -128, 127, -128]
    (got,) = check("quantize_linear", x, np.float32(1), np.uint8(10), to="u8")
    assert got.tolist() == [10, 12, 8, 255, 0, 255, 0]


def test_by_channel() -> None:
    x, scale = rand(2, 3, 4), np.float32([0.1, 0.2, 0.3]).reshape(3, 1)
    zero = np.int8([1, -2, 3]).reshape(3, 1)
    (codes,) = check("quantize_linear", x, scale, zero, to="i8")
    (back,) = check("dequantize_linear", codes, scale, zero)
    assert (abs(back - x) <= scale / 2 + 1e-6).all()


@pytest.mark.parametrize("code", ["i1", "u1", "i2", "u2", "i4"])
def test_dequantize_types(code: str) -> None:
    x = rand(2, 3, dtype=code)
    check("dequantize_linear", x, np.float32(0.5), np.array(3, code))
    check("dequantize_linear", x, np.float16(0.5))


@pytest.mark.parametrize("kind", ["u8", "i8"])
def test_lookup_is_by_bits(kind: str) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(4, 64)
    table = (np.arange(256) * 37 % 256).astype(np.uint8)
    (got,) = check("lookup", codes.view(dtype(kind).numpy), table.view(np.int8))
    assert (got.view(np.uint8) == table[codes]).all()


def test_refusals() -> None:
    x, scale = rand(2), np.float32(1)
    for name, arrays, attrs in (
        ("quantize_linear", [x, scale, np.uint8(0)], {"to": "i8"}),
        ("quantize_linear", [x, scale], {"to": "f32"}),
        ("quantize_linear", [x, rand(1, 2)], {"to": "i8"}),
        ("dequantize_linear", [x, scale], {}),
        ("lookup", [np.uint8([1]), np.zeros(255, np.uint8)], {}),
        ("lookup", [np.int32([1]), np.zeros(256, np.uint8)], {}),
        ("dequantize_linear", [np.int8([1]), scale, np.uint8(0)], {}),
    ):
        with pytest.raises(ValueError, match=r"quantize|lookup"):
            make_op(name, arrays, attrs, False)
