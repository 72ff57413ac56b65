"""top_k: ties, NaN, unsigned types, and every k."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_check import check, make_op, rand


@pytest.mark.parametrize(
    ("x", "k", "largest", "where"),
    [
        (np.float32([1, 3, 3, 2, 3]), 3, True, [1, 2, 4]),
        (np.uint8([0, 2, 0, 1]), 2, False, [0, 2]),
        (np.float32([1, np.nan, 5, 2, np.nan, 4]), 3, True, [1, 4, 2]),
        (np.float32([1, np.nan, 5, 2, np.nan, 4]), 3, False, [0, 3, 5]),
        (np.int8([-128, 127, -128]), 1, False, [0]),
    ],
)
def test_by_hand(x: np.ndarray, k: int, largest: bool, where: list[int]) -> None:
    values, got = check("top_k", x, axis=0, k=k, largest=largest)
    assert got.tolist() == where
    np.testing.assert_array_equal(values, x[where])


def test_nan_of_bfloat16_is_the_greatest_in_rows_of_any_length() -> None:
    x = np.float32([-2, 1, np.nan, 0, np.nan, 3] * 4).astype(ml_dtypes.bfloat16)
    values, _ = check("top_k", x, axis=0, k=24, largest=False)
    assert np.isnan(values.astype(np.float32)).tolist() == [False] * 16 + [True] * 8


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("largest", [False, True])
def test_axes_and_sizes(axis: int, largest: bool) -> None:
    x = rand(2, 3, 7, dtype="i4")
    for k in (0, 1, x.shape[axis]):
        check("top_k", x, axis=axis, k=k, largest=largest)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, 17])
def test_lengths(n: int) -> None:
    check("top_k", rand(n), axis=0, k=n, largest=False)


def test_refusals() -> None:
    for attrs in ({"axis": 0, "k": 4}, {"axis": 0, "k": -1}, {"axis": 1, "k": 1}):
        with pytest.raises(ValueError, match="top_k"):
            make_op("top_k", [rand(3)], attrs, False)
