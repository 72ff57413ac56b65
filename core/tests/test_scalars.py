"""The numpy meanings of the scalar table: what every evaluator is held against."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from cuvil.ops.scalars import SCALARS, evaluate, scalar

ROWS_BY_TYPE = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in SCALARS.values()
    for dtype in row.dtypes
]


@pytest.mark.parametrize(("row", "dtype"), ROWS_BY_TYPE)
def test_every_row_evaluates_to_its_result_type(row, dtype):
    operands = [np.array([0, 1, 2, 3]).astype(t.numpy) for t in row.operand_dtypes(dtype)]
    attrs = {
        "cast": {"to": "i32"},
        "cast_narrow": {"to": "f8e5m2"},
        "quantize": {"to": "u8"},
        "fake_quantize": {"to": "u8"},
        "bitcast": {"of": dtype, "to": dtype},
    }.get(row.name, {})
    out = evaluate(row.name, *operands, **attrs)
    assert out.dtype == row.result_dtype(dtype, attrs).numpy
    assert out.shape == (4,)


def i32(*values):
    return np.array(values, np.int32)


def f32(*values):
    return np.array(values, np.float32)


LOWEST = -(2**31)
ROOT = math.sqrt(2 / math.pi)
SELU = (1.0507009873554805, 1.6732632423543772)


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("div", i32(7, -7, 7, 5, LOWEST), i32(2, 2, -2, 0, -1), [3, -3, -3, 0, LOWEST]),
        ("mod", i32(7, -7, 7, -7, 5, LOWEST), i32(3, 3, -3, -3, 0, -1), [1, 2, -2, -1, 0, 0]),
        ("fmod", i32(7, -7, 7, -7, 5, LOWEST), i32(3, 3, -3, -3, 0, -1), [1, -1, 1, -1, 0, 0]),
        ("mod", f32(7, -7, 7, -5.5), f32(3, 3, -3, np.inf), [1, 2, -2, np.inf]),
        ("fmod", f32(7, -7, 7, -5.5), f32(3, 3, -3, np.inf), [1, -1, 1, -5.5]),
        ("pow", i32(3, 2, -2, 0), i32(4, 31, 3, 0), [81, LOWEST, -8, 1]),
        ("pow", i32(1, -1, 0, 5), i32(-5, -3, -1, -1), [1, -1, 0, 0]),
        ("shift_left", i32(1, 1, 1, 1), i32(3, 31, 32, -1), [8, LOWEST, 0, 0]),
        ("shift_right", i32(-8, 8, -8, 8), i32(1, 1, 40, 40), [-4, 4, -1, 0]),
        ("add", i32(2**31 - 1), i32(1), [LOWEST]),
        ("max", f32(1, np.nan, 1), f32(2, 1, np.nan), [2, np.nan, np.nan]),
    ],
)  # fmt: skip
def test_binary_functions_have_defined_results(name, a, b, expected):
    np.testing.assert_array_equal(evaluate(name, a, b), expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("round", [-2, -0.0, 0, 2, 2]),
        ("floor", [-2, -1, 0, 1, 2]),
        ("ceil", [-1, 0, 1, 2, 3]),
        ("trunc", [-1, 0, 0, 1, 2]),
    ],
)
def test_rounding(name, expected):
    x = f32(-1.5, -0.5, 0.5, 1.5, 2.5)
    np.testing.assert_array_equal(evaluate(name, x), f32(*expected))


def test_cast_saturates_rounds_and_tests_for_zero():
    x = f32(-1e20, -1.9, 0, 1.9, 300, 1e20, np.nan, np.inf)
    assert evaluate("cast", x, to="i8").tolist() == [-128, -1, 0, 1, 127, 127, 0, 127]
    assert evaluate("cast", x, to="u8").tolist() == [0, 0, 0, 1, 255, 255, 0, 255]
    assert evaluate("cast", x, to="i64")[5] == 2**63 - 1
    assert evaluate("cast", x, to="bool").tolist() == [True, True, False, *[True] * 5]
    assert evaluate("cast", i32(300, -1), to="u8").tolist() == [44, 255]
    assert evaluate("cast", np.float64([1 + 2**-11 + 2**-40]), to="f16")[0] == 1 + 2**-10


def test_erf_agrees_with_the_standard_library():
    x = np.linspace(-7, 7, 2001)
    expected = [math.erf(v) for v in x]
    np.testing.assert_allclose(evaluate("erf", x), expected, rtol=4e-16)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("gelu", lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2)))),
        ("gelu_tanh", lambda x: x / 2 * (1 + math.tanh(ROOT * (x + 0.044715 * x**3)))),
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("softplus", lambda x: math.log(1 + math.exp(x))),
        ("mish", lambda x: x * math.tanh(math.log(1 + math.exp(x)))),
        ("selu", lambda x: SELU[0] * (x if x > 0 else SELU[1] * math.expm1(x))),
        ("hardswish", lambda x: x * max(0, min(1, x / 6 + 0.5))),
        ("shrink", lambda x: x + 0 if x < -0.5 else x if x > 0.5 else 0),
        ("softsign", lambda x: x / (1 + abs(x))),
    ],
)  # fmt: skip
def test_activations_are_their_formulas(name, formula):
    x = np.linspace(-8, 8, 101)
    np.testing.assert_allclose(evaluate(name, x), [formula(v) for v in x], rtol=1e-9, atol=1e-12)


def test_activations_do_not_overflow():
    x = f32(-1e4, 1e4)
    for name in ("silu", "softplus", "mish", "gelu_tanh", "elu"):
        assert np.isfinite(evaluate(name, x)).all(), name


def test_half_types_are_computed_in_f32_and_rounded():
    x = np.array([1.0, 3.0], ml_dtypes.bfloat16)
    assert evaluate("div", x, x[::-1].copy()).dtype == ml_dtypes.bfloat16
    big = np.array([300.0], np.float16)
    assert evaluate("silu", big)[0] == 300.0


def test_misuse_is_refused_by_name():
    with pytest.raises(KeyError, match="unknown scalar function 'frobnicate'"):
        evaluate("frobnicate", f32(1))
    with pytest.raises(TypeError, match="scalar exp does not take"):
        evaluate("exp", i32(1))
    with pytest.raises(TypeError, match="scalar add does not take"):
        evaluate("add", i32(1), f32(1))
    with pytest.raises(KeyError, match="cast needs attribute to"):
        evaluate("cast", f32(1))
    with pytest.raises(KeyError, match="elu has no attribute beta"):
        scalar("elu").attributes({"beta": 1})
