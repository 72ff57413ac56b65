"""Every thirteenth case of ONNX's own suite, compiled ahead of time and called from C."""

from __future__ import annotations

import pytest

from cuvil.onnx_backend import CuvilBackend
from tools.conformance.crew import run_cases
from tools.conformance.lists import differences, known
from tools.conformance.suite import Suite

EVERY = 13


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_listed_passes_from_c() -> None:
    names = Suite(CuvilBackend).names()[::EVERY]
    outcomes = run_cases("c", names, jobs=2)
    assert len(outcomes) >= 150
    assert differences(outcomes, known("c")) == []
