"""The backend's own rewrite rules, by their examples."""

from __future__ import annotations

import numpy as np
import pytest

import cuvil.ops
from cuvil.ir.record import tensor_type
from cuvil.ops.interpreter import run
from cuvil.rewrite.engine import run_rules
from cuvil.rewrite.registry import load_rules
from cuvil.rewrite.rule import Rule

assert cuvil.ops is not None
RULES = load_rules("cuvil_backend_arm64.rules")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_fires_once_and_numbers_stay(rule: Rule) -> None:
    for case in rule.examples:
        graph = case.graph()
        shapes = [[7 if not isinstance(d, int) else d for d in tensor_type(v).dims]
                  for v in graph.inputs]  # fmt: skip
        rng = np.random.default_rng(5)
        feeds = {
            name: rng.standard_normal(shape).astype(tensor_type(v).dtype.numpy)
            for name, v, shape in zip(graph.input_names, graph.inputs, shapes, strict=True)
        }
        before = run(graph, feeds)
        assert run_rules(graph, [rule]).counts == {rule.name: 1}
        assert run_rules(graph, [rule]).total == 0
        for name, value in run(graph, feeds).items():
            assert value.dtype == before[name].dtype
            np.testing.assert_allclose(
                value.astype(np.float64), before[name].astype(np.float64), rtol=0,
                atol=rule.tolerance * np.abs(before[name]).max(),
            )  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_does_not_fire_on_a_near_miss(rule: Rule) -> None:
    assert rule.near_misses
    assert [run_rules(case.graph(), [rule]).total for case in rule.near_misses] == [0]
