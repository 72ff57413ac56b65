"""Every rule, by its own examples: it fires, it does not fire on the near misses, numbers stay,
and what it leaves it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_check import feeds_of, same_numbers

import cuvil.ops
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ir.text import parse_ir, print_ir
from cuvil.ops.interpreter import run
from cuvil.rewrite.engine import run_phases, run_rules
from cuvil.rewrite.registry import load_rules
from cuvil.rewrite.rule import Case, Rule

assert cuvil.ops is not None
RULES = load_rules()


def over(cases: Callable[[Rule], tuple[Case, ...]]) -> Any:
    return pytest.mark.parametrize(
        ("rule", "case"),
        [pytest.param(r, c, id=f"{r.name}-{i}") for r in RULES for i, c in enumerate(cases(r))],
    )


def outcome(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    return run(graph, feeds_of(graph))


@over(lambda r: r.examples)
def test_it_fires_and_numbers_stay(rule: Rule, case: Case) -> None:
    graph = case.graph()
    feeds = feeds_of(graph, special=rule.tolerance == 0)
    before = run(graph, feeds)
    types = [tensor_type(v) for v in graph.outputs]
    report = run_rules(graph, [rule])
    assert report.counts.get(rule.name), print_ir(graph.module)
    graph.module.verify()
    assert [tensor_type(v) for v in graph.outputs] == types
    same_numbers(run(graph, feeds), before, rule.tolerance)


@over(lambda r: r.examples)
def test_a_second_run_changes_nothing(rule: Rule, case: Case) -> None:
    graph = case.graph()
    run_rules(graph, [rule])
    text = print_ir(graph.module)
    assert run_rules(graph, [rule]).total == 0
    assert print_ir(graph.module) == text
    parse_ir(text)


@over(lambda r: r.near_misses)
def test_it_does_not_fire_on_a_near_miss(rule: Rule, case: Case) -> None:
    graph = case.graph()
    assert run_rules(graph, [rule]).counts == {}, print_ir(graph.module)


@over(lambda r: (*r.examples, *r.near_misses))
def test_all_rules_together_keep_the_numbers_and_end(rule: Rule, case: Case) -> None:
    graph = case.graph()
    feeds = feeds_of(graph)
    before = run(graph, feeds)
    run_phases(graph)
    graph.module.verify()
    same_numbers(run(graph, feeds), before, 1e-5)
    assert run_phases(graph).counts == {}, print_ir(graph.module)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_rules_say_what_they_do(rule: Rule) -> None:
    assert rule.doc
    assert rule.examples
    assert rule.near_misses
