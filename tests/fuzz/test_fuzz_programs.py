"""A fixed handful of random programs; `python -m tests.fuzz.differential` makes more of them."""

from __future__ import annotations

import pytest

from tests.fuzz.differential import Case, case_of, check

SEEDS = range(8)
STEPS = 20


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_plans(seed: int, symbolic: bool) -> None:
    """Rewritten, planned, run on numpy: kernels stay inside their buffers."""
    assert check(Case(seed, STEPS, symbolic, rules=seed % 3 == 0), ["planned"]) == []


@pytest.mark.parametrize("mode", ["plain", "rewritten", "narrow"])
@pytest.mark.parametrize("seed", SEEDS)
def test_native_code(seed: int, mode: str) -> None:
    """Static extents and extents of the run, short axes and long ones, chains of rules."""
    assert check(case_of(seed + 100, STEPS), [mode]) == []
