"""A fixed handful of damaged models; `python -m tests.fuzz.mutate` makes more of them."""

from __future__ import annotations

from tests.fuzz.mutate import run_cases


def test_damaged_models_give_an_error_or_an_answer() -> None:
    """Two small models and a real one, in turn."""
    counts, faults = run_cases(range(60))
    assert faults == {}
    assert counts["answer"] > 5 and counts["ModelError"] > 5
