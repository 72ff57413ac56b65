"""A fixed handful of random graphs; `python -m tests.fuzz.differential` makes more of them."""

from __future__ import annotations

import pytest

from tests.fuzz.batch import KINDS, Case
from tests.fuzz.check import check
from tests.fuzz.differential import modules, pack, unpack, unused

FIRST = 0
SEEDS = range(FIRST, FIRST + 44)  # every kind four times


@pytest.mark.parametrize("mode", ["phases", "planned", "plain", "aot"])
def test_graphs_of_every_kind(mode: str) -> None:
    """One module: numpy, and every stage and form of the compiler, give the same numbers."""
    result = check([Case(n) for n in SEEDS], [mode], number=3)
    assert result.faults == []
    assert result.graphs == len(SEEDS) and len(result.primitives) > 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_its_number(kind: str) -> None:
    """The same graph alone as among others, so that a fault can be repeated by itself."""
    alone = check([Case(7, kind=kind)], ["phases"])
    among = check([Case(3), Case(7, kind=kind)], ["phases"])
    first = check([Case(3)], ["phases"])
    assert among.primitives == first.primitives + alone.primitives


def test_a_range_is_cut_at_the_same_numbers_wherever_it_starts() -> None:
    assert list(modules(30, 60)) == [range(30, 40), range(40, 80), range(80, 90)]


def test_what_a_worker_says_is_what_it_found() -> None:
    result = check([Case(5)], ["phases"])
    assert unpack(pack(result)) == result
    assert "rule gelu" in unused(result)
