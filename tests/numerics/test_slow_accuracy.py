"""The documented bounds, over a part of all float32; `make numerics` looks at every one."""

from __future__ import annotations

import pytest

from tools.numerics.builds import builds, unary_rows
from tools.numerics.page import faults
from tools.numerics.samples import halves, powers, wide
from tools.numerics.store import Record
from tools.numerics.sweep import sweep

STEP = 499
BOUNDS = {"exp": 1.5, "log": 1.5, "tanh": 3.0, "erf": 4.0, "sigmoid": 2.5}


@pytest.mark.parametrize("name", [row.name for row in unary_rows("f32")])
def test_float32(name: str) -> None:
    outcomes = sweep(name, builds(), STEP, tails=4)
    assert faults([Record(name, STEP, outcomes)], []) == []
    assert max(o.ulps for o in outcomes) <= BOUNDS.get(name, 5.0)


@pytest.mark.parametrize("make", [wide, powers, halves], ids=lambda f: f.__name__)
def test_other_types(make) -> None:
    assert faults([], make(builds())) == []
