"""ONNX's own suite: exactly the listed cases do not pass."""

from __future__ import annotations

import pytest

from cuvil.onnx_backend import ReferenceBackend
from tools.conformance import differences, listed, run_suite


@pytest.mark.filterwarnings("ignore")
def test_the_list_of_what_is_not_supported_is_exact():
    outcomes = run_suite(ReferenceBackend)
    assert len(outcomes) > 2000
    assert differences(outcomes, listed()) == []


def test_every_listed_case_has_a_reason():
    assert all(len(reason) > 10 for reason in listed().values())
