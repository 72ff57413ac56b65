"""A few random ONNX models; `python -m tests.fuzz.onnx_models` makes more of them."""

from __future__ import annotations

import pytest

from tests.fuzz.onnx_models import build, check


@pytest.mark.parametrize("number", range(8))
def test_cuvil_computes_what_onnx_runtime_does(number: int) -> None:
    faults, operators = check(number)
    assert faults == []
    assert sum(operators.values()) >= 10


def test_a_model_is_its_number() -> None:
    first, second = (build(5).finished(symbolic=True).SerializeToString() for _ in "ab")
    assert first == second
