"""The rest of the fixed graphs, three hundred in all, and a sample of the bugs that they find."""

from __future__ import annotations

import pytest

from tests.fuzz.differential import check_range
from tests.fuzz.mutant_table import MUTANTS
from tests.fuzz.mutants import run_mutants

MODULES = range(44, 300, 32)


@pytest.mark.parametrize("start", MODULES)
def test_graphs(start: int) -> None:
    """In every way that the command knows."""
    assert check_range(range(start, start + 32)).faults == []


@pytest.mark.parametrize("text", ["merge_constants", "sink_transpose_reduce", "_slice_element"])
def test_a_bug_is_found(text: str) -> None:
    numbers = [i for i, m in enumerate(MUTANTS) if text in m.name]
    assert [o.split()[0] for o in run_mutants(numbers)] == ["found"]
