"""Every bug of the table can still be put in; the slow tests look for some of them."""

from __future__ import annotations

import pytest

from tests.fuzz.mutant_table import MUTANTS, Mutant
from tests.fuzz.mutants import changed_code, function_of


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{i}-{m.name}" for i, m in enumerate(MUTANTS)])
def test_the_source_is_what_the_table_says(mutant: Mutant) -> None:
    assert mutant.old != mutant.new
    assert changed_code(mutant).co_varnames[:1] == function_of(mutant).__code__.co_varnames[:1]


def test_there_are_enough_of_every_kind() -> None:
    kinds = [m.kind for m in MUTANTS]
    assert len(MUTANTS) >= 50
    assert min(kinds.count(k) for k in ("rule", "planner", "kernel", "code")) >= 10
