"""Primitives behind operators that look for something: positions, suppression, regions."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, rand


@pytest.mark.parametrize("bits", ["", "0", "1", "0110", "10101", "000"])
def test_positions(bits: str) -> None:
    found = np.array([b == "1" for b in bits], bool)
    (places,) = check("positions", found, count=int(found.sum()))
    assert places.tolist() == np.flatnonzero(found).tolist()


def test_positions_beyond_the_count_are_dropped() -> None:
    assert check("positions", np.array([True, True, True]), count=2)[0].tolist() == [0, 1]


def test_boxes_that_overlap_better_ones_go() -> None:
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 0.9, 1], [0, 2, 1, 3], [0, 0, 0, 0]]])
    order = np.array([[[0, 1, 2, 3]], [[1, 0, 2, 3]]]).reshape(1, 2, 4)
    eligible = np.ones((1, 2, 4), bool)
    limit = np.array(10)
    (kept,) = check("suppress", boxes, order, eligible, np.array(0.5, np.float32), limit)
    assert kept.tolist() == [[[True, False, True, True]] * 2]
    (few,) = check("suppress", boxes, order, eligible, np.array(0.95, np.float32), np.array(2))
    assert few.tolist() == [[[True, True, False, False]] * 2]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions(mode: str, samples: int) -> None:
    images = rand(2, 3, 5, 7)
    regions = np.float32([[0, 0, 6, 4], [1.5, 0.5, 3, 9], [-5, -5, -3, -3], [2, 2, 2, 2]])
    which = np.array([0, 1, 0, 1])
    size = {"height": 2, "width": 3, "offset": 0.5}
    check("roi_align", images, regions, which, **size, mode=mode, samples=samples)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_determinants(n: int) -> None:
    (found,) = check("determinant", rand(2, n, n))
    assert found.shape == (2,)


def test_a_determinant_that_needs_pivots() -> None:
    (found,) = check("determinant", np.float32([[0, 2], [3, 0]]))
    assert found == -6
    assert check("determinant", np.float32([[1, 2], [2, 4]]))[0] == 0
