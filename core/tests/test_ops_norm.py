"""Softmax and norms: axes, accuracy on large equal numbers, NaN rows, empty rows."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, make_op, rand


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(name: str, axis: int) -> None:
    (got,) = check(name, rand(2, 3, 5), axis=axis)
    total = (np.exp(got) if name == "log_softmax" else got).sum(axis)
    np.testing.assert_allclose(total, 1, rtol=1e-5)
    check(name, rand(2, 3, 5, dtype="f2"), axis=axis)
    check(name, rand(2, 0, 5), axis=axis)


def test_softmax_of_large_logits() -> None:
    (got,) = check("softmax", np.float16([[2e4, 2e4, -6e4]]), axis=1)
    assert got.tolist() == [[0.5, 0.5, 0.0]]


def test_softmax_of_a_masked_row_is_nan() -> None:
    (got,) = check("softmax", np.float32([[-np.inf, -np.inf], [0, -np.inf]]), axis=1)
    assert np.isnan(got[0]).all() and got[1].tolist() == [1, 0]


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms(name: str) -> None:
    x = rand(2, 3, 4)
    check(name, x, axis=2, epsilon=0.1)
    check(name, x, rand(4), axis=2)
    check(name, x, rand(3, 1), axis=1)
    check(name, rand(2, 4, dtype="f2") * 200, rand(4, dtype="f2"), axis=1)
    check(name, rand(0, 4), axis=1)
    check(name, rand(4, 0), axis=1)


def test_layer_norm_with_bias() -> None:
    check("layer_norm", rand(2, 3, 4), rand(3, 4), rand(4), axis=1)


def test_layer_norm_of_large_equal_numbers() -> None:
    x = np.float32([[40000, 40001, 40002, 40003]])
    (got,) = check("layer_norm", x, axis=1)
    np.testing.assert_allclose(got[0], [-1.34164, -0.44721, 0.44721, 1.34164], rtol=1e-5)
    check("layer_norm", (1000 + np.arange(16) * 1e-3).astype("f4")[None], axis=1)


def test_refusals() -> None:
    for name, arrays, axis in (
        ("softmax", [rand(2, dtype="i4")], 0),
        ("softmax", [rand(2)], 1),
        ("layer_norm", [rand(2, 3), rand(2)], 1),
        ("rms_norm", [rand(2, 3), rand(3), rand(3)], 1),
    ):
        with pytest.raises(ValueError, match=r"softmax|norm"):
            make_op(name, arrays, {"axis": axis}, False)
