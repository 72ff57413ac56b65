"""Gathers and scatters: negative indices, indices outside, empty axes, duplicates."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, lowered, make_op, meaning, rand

from cuvil.errors import RuntimeFailure

X = np.arange(12, dtype="f4").reshape(3, 4)
OUTSIDE = 9  # CUVIL_INDEX_OUT_OF_RANGE


def fails(name: str, *arrays: np.ndarray, **attrs: object) -> None:
    """Numpy raises, every lowering returns the status and stays inside its buffers."""
    with pytest.raises(RuntimeFailure):
        meaning(name, *arrays, **attrs)
    for symbolic in (False, True):
        status, _ = lowered(make_op(name, arrays, dict(attrs), symbolic), arrays, False)
        assert status == OUTSIDE


@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_gather(kind: str) -> None:
    (got,) = check("gather", X, np.array([0, -1], kind), axis=0)
    np.testing.assert_array_equal(got, X[[0, 2]])
    check("gather", X, np.array([[1, -4], [3, 0]], kind), axis=1)
    check("gather", X, np.array(-1, kind), axis=1)
    check("gather", X, np.zeros((0,), kind), axis=1)
    check("gather", np.zeros((0, 4), "f4"), np.zeros((0,), kind), axis=0)


def test_gather_elements() -> None:
    (got,) = check("gather_elements", X, np.full((3, 2), -1), axis=1)
    assert got.tolist() == [[3, 3], [7, 7], [11, 11]]
    check("gather_elements", X, np.int32([[0, 1, 2, 0]]), axis=0)


def test_gather_nd() -> None:
    assert check("gather_nd", X, np.int64([[-1, -1], [0, -2]]))[0].tolist() == [11, 2]
    check("gather_nd", X, np.int64([[-1], [0]]))
    check("gather_nd", rand(2, 3, 4), np.int64([[[1], [0]], [[-1], [2]]]), batch_dims=1)
    check("gather_nd", rand(2, 3), np.zeros((2, 0), "i8"))
    check("gather_nd", rand(2, 3), np.int64([1, -1]))


def test_an_index_outside_fails_the_run() -> None:
    for bad in (3, -4):
        fails("gather", X, np.int64([0, bad]), axis=0)
        fails("gather_elements", X, np.full((1, 4), bad), axis=0)
        fails("gather_nd", X, np.int64([[bad, 0]]))
        fails("scatter_nd", X, np.int64([[bad]]), rand(1, 4))
        fails("scatter_elements", X, np.full((1, 4), bad), rand(1, 4), axis=0)
    empty = np.zeros((0, 4), "f4")
    fails("gather", empty, np.int64([0]), axis=0)
    fails("scatter_nd", empty, np.int64([[0]]), rand(1, 4))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str) -> None:
    rows = np.int64([[0, -1, 0, 1], [2, 1, 0, 1]])
    check("scatter_elements", X, rows, rand(2, 4), axis=0, reduction=reduction)
    check("scatter_elements", X, np.int64([[-1], [0]]), rand(2, 1), axis=1, reduction=reduction)
    check("scatter_nd", X, np.int64([[-1], [0], [2]]), rand(3, 4), reduction=reduction)
    check("scatter_nd", X, np.int64([[[1, 1], [-1, 0]]]), rand(1, 2), reduction=reduction)
    check("scatter_nd", X, np.zeros((2, 0), "i8"), rand(2, 3, 4), reduction=reduction)
    check("scatter_nd", X, np.zeros((0, 1), "i8"), rand(0, 4), reduction=reduction)


def test_the_last_update_wins() -> None:
    (got,) = check("scatter_nd", X, np.int64([[-1], [-1]]), np.float32([[1] * 4, [2] * 4]))
    assert got[2].tolist() == [2] * 4


@pytest.mark.parametrize(
    ("name", "arrays", "attrs"),
    [
        ("gather", [X, X], {"axis": 0}),
        ("gather", [X, np.int64([0])], {"axis": 2}),
        ("gather_elements", [X, np.int64([0])], {"axis": 0}),
        ("gather_elements", [X, np.zeros((4, 1), "i8")], {"axis": 1}),
        ("gather_nd", [X, np.int64([[0, 0, 0]])], {}),
        ("scatter_nd", [X, np.int64([[0]]), rand(1, 3)], {}),
        ("scatter_nd", [X, np.int64([[0]]), rand(1, 4)], {"reduction": "mean"}),
    ],
)
def test_refusals(name: str, arrays: list, attrs: dict) -> None:
    with pytest.raises(ValueError, match=name):
        make_op(name, arrays, attrs, False)
