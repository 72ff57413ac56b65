"""Which steps a random program takes."""

from __future__ import annotations

from cuvil.ir.names import Value
from tests.fuzz.control_steps import CONTROL
from tests.fuzz.exact_steps import EXACT
from tests.fuzz.heavy_steps import HEAVY
from tests.fuzz.index_steps import INDEX
from tests.fuzz.math_steps import MATH
from tests.fuzz.program import Program
from tests.fuzz.steps import SIMPLE, choose

ALL = (*SIMPLE, *MATH, *INDEX, *HEAVY, *CONTROL)


def step(p: Program) -> Value:
    """One random step; Misfit where it does not fit."""
    return choose(p, EXACT if p.special else ALL)(p)
