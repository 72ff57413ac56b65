"""Reductions: kinds, axes, dtypes, and the empty axis."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_check import check, lowered, make_op, meaning, rand


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "mean"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_kinds_and_axes(kind: str, axes: tuple[int, ...], keepdims: bool) -> None:
    check("reduce", rand(2, 3, 9), kind=kind, axes=axes, keepdims=keepdims)


@pytest.mark.parametrize("kind", ["any", "all"])
def test_bools(kind: str) -> None:
    check("reduce", rand(3, 4, dtype="bool"), kind=kind, axes=(1,))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "f2", ml_dtypes.bfloat16, "f8"])
def test_dtypes_keep_their_type(dtype: str) -> None:
    for kind in ("sum", "mean", "max"):
        check("reduce", rand(3, 10, dtype=dtype), kind=kind, axes=(0,))


def test_empty_axis_gives_the_neutral_element() -> None:
    x = np.zeros((2, 0), np.float32)
    for kind, value in {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}.items():
        (got,) = check("reduce", x, kind=kind, axes=(1,))
        np.testing.assert_array_equal(got, np.full(2, value, np.float32))
    (got,) = check("reduce", x.astype("i4"), kind="max", axes=(1,))
    assert got.tolist() == [np.iinfo("i4").min] * 2


def test_half_adds_up_in_single_precision() -> None:
    x = np.full((1, 4096), 8.0, np.float16)
    assert meaning("reduce", x * 4, kind="mean", axes=(1,))[0][0] == 32
    ones = np.ones((1, 3000), np.float16)
    assert check("reduce", ones, kind="sum", axes=(1,))[0][0] == 3000


def test_nan_wins_a_maximum() -> None:
    (got,) = check("reduce", np.float32([[1, np.nan, 3]]), kind="max", axes=(1,))
    assert np.isnan(got[0])


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_arg_reduce_ties(kind: str, last: bool, axis: int) -> None:
    x = np.float32([[1, 3, 3, 2], [3, 1, 3, 1], [1, 3, 2, 1]])
    for data in (x, x.astype("i4"), x.astype("u1")):
        check("arg_reduce", data, kind=kind, axis=axis, last=last, keepdims=last)


def test_arg_reduce_of_equal_prefix() -> None:
    """Four 0 then twelve -1: the first minimum is 4, the last 15."""
    x = np.int32([0] * 4 + [-1] * 12)
    assert check("arg_reduce", x, kind="min", axis=0)[0] == 4
    assert check("arg_reduce", x, kind="min", axis=0, last=True)[0] == 15


def test_arg_reduce_takes_a_nan() -> None:
    x = np.float32([1, np.nan, 5, np.nan])
    assert check("arg_reduce", x, kind="max", axis=0)[0] == 1
    assert check("arg_reduce", x, kind="min", axis=0, last=True)[0] == 3


def test_refusals() -> None:
    x = rand(2, 3)
    for attrs in ({"kind": "sum", "axes": (2,)}, {"kind": "sum", "axes": (0, 0)},
                  {"kind": "any", "axes": (0,)}, {"kind": "median", "axes": (0,)}):  # fmt: skip
        with pytest.raises(ValueError, match="reduc"):
            make_op("reduce", [x], attrs, False)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative(axis: int, exclusive: bool, reverse: bool) -> None:
    for kind in ("sum", "prod"):
        more = {"kind": kind, "axis": axis, "exclusive": exclusive, "reverse": reverse}
        check("cumulative", rand(2, 3, 4), **more)
        check("cumulative", rand(2, 0, 4), **more)


@pytest.mark.parametrize("shape", [(3000, 16), (50, 60, 16)])
def test_long_sums_of_rows_are_made_of_short_ones(shape: tuple[int, ...]) -> None:
    """One chain of roundings would be off by some 2e-6."""
    x = np.random.default_rng(0).random(shape, np.float32)
    axes = tuple(range(x.ndim - 1))
    op = make_op("reduce", (x,), {"kind": "sum", "axes": axes}, False)
    _, (got,) = lowered(op, (x,), False)
    assert np.abs(got / x.sum(axis=axes, dtype=np.float64) - 1).max() < 1e-6


def test_unsigned_numbers_past_the_signed_range() -> None:
    x = np.array([[2**64 - 1, 2**63 + 1], [2**64 - 3, 2**64 - 2]], np.uint64)
    for kind in ("min", "max"):
        check("reduce", x, kind=kind, axes=(1,))
