"""Upper bounds of extents that a run finds."""

from __future__ import annotations

from itertools import product

import pytest

from cuvil.ir.dims import dim_max, dim_min, evaluate, symbol
from cuvil.ir.dims_upper import Top, upper_bound

N, K, U, STEP = symbol("N"), symbol("k"), symbol("u"), symbol("step")
TOPS = {"step": Top(0, N - 1), "k": Top(0, 3 * N), "u": Top(0, None)}


@pytest.mark.parametrize(
    "dim, expected",
    [
        (N * 4, N * 4),
        (K, 3 * N),
        (2 * K + 1, 6 * N + 1),
        (N - K + 5, N + 5),
        (K * STEP, 3 * N * (N - 1)),
        (K // 2, 3 * N // 2),
        (dim_min(K, 7), dim_min(3 * N, 7)),
        (dim_min(U, 7), 7),
        (dim_max(K, 7), dim_max(3 * N, 7)),
        (U % 5, 4),
        (U, None),
        (dim_max(U, 7), None),
        (N * U, None),
        (5 - U, 5),
    ],
)
def test_bounds(dim, expected):
    assert upper_bound(dim, TOPS) == expected


def test_a_bound_may_name_an_earlier_symbol():
    assert upper_bound(2 * U, {"k": Top(0, N), "u": Top(0, K + 1)}) == 2 * N + 2


def test_no_value_is_above_its_bound():
    dims = [K * STEP - K, (N - K) * STEP + K // 3, dim_max(K - STEP, 2 * K % 7), K * K - STEP * N]
    for dim in dims:
        bound = upper_bound(dim, TOPS)
        for n, k, step in product(range(1, 5), range(13), range(4)):
            if bound is not None and step < n and k <= 3 * n:
                assert evaluate(dim, {"N": n, "k": k, "step": step}) <= evaluate(bound, {"N": n})
