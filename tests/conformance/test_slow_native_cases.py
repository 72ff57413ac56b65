"""ONNX's own suite in compiled code: whole as it is, and a part of it in the other forms."""

from __future__ import annotations

import pytest

from cuvil.onnx_backend import CuvilBackend
from tools.conformance.crew import run_cases
from tools.conformance.lists import differences, known
from tools.conformance.suite import Suite

PROCESSES = 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("form", "every", "least"), [
    ("static", 1, 2000), ("symbolic", 10, 180), ("folded", 10, 190),
])  # fmt: skip
def test_what_is_not_listed_passes(form: str, every: int, least: int):
    names = Suite(CuvilBackend).names()[::every]
    outcomes = run_cases(form, names, PROCESSES)
    assert differences(outcomes, known(form)) == []
    assert sum(o.passed for o in outcomes) >= least
