"""A fixed handful of random programs; `python -m tests.fuzz.differential` makes more of them."""

from __future__ import annotations

import pytest

from tests.fuzz.differential import MODES, check

SEEDS = range(10)
STEPS = 20


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_plans(seed: int, symbolic: bool) -> None:
    """Rewritten, planned, run on numpy: kernels stay inside their buffers."""
    assert check(seed, STEPS, symbolic, {"planned": MODES["planned"]}) == []


@pytest.mark.parametrize("mode", ["plain", "rewritten"])
@pytest.mark.parametrize("seed", SEEDS)
def test_native_code(seed: int, mode: str) -> None:
    """Static extents for even seeds, extents of the run for odd ones."""
    assert check(seed + 100, STEPS, seed % 2 == 1, {mode: MODES[mode]}) == []
