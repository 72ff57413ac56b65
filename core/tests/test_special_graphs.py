"""Graphs with numbers and names in place of symbols, and programs for particular extents."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import model

from cuvil.errors import OptionError
from cuvil.extents import Extents
from cuvil.frontends.onnx import import_model
from cuvil.ir.dims import evaluate, symbol
from cuvil.ir.graph import Graph
from cuvil.ir.substitute import reshape_input, substituted
from cuvil.ir.text import print_ir
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.special import bytes_from, special_graphs
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases
from cuvil.rewrite.verify import verify_structure

LOOP = """loops (float[N, 4] x) => (float[N, 4] y, int64[2] extents) {
  n = Constant<value = int64 {3}>()  yes = Constant<value = bool {1}>()
  y = Loop(n, yes, x)<body = body (int64 i, bool c, float[N, 4] a) => (bool k, float[N, 4] b)
    { k = Identity(c)  b = Add(a, a) }>
  extents = Shape(x) }"""


def loops() -> Graph:
    return import_model(model(LOOP))


def test_a_number_in_place_of_a_symbol_stands_everywhere() -> None:
    graph = loops()
    fixed = substituted(graph, {"N": 5})
    verify_structure(fixed)
    assert fixed.symbols() == () and "N" in graph.symbols()
    assert "[N" not in print_ir(fixed.module)
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    for made in (graph, fixed):
        found = run(made, {"x": x})
        np.testing.assert_array_equal(found["y"], 8 * x)
        np.testing.assert_array_equal(found["extents"], [5, 4])


def test_what_is_known_of_a_symbol_goes_with_its_name() -> None:
    graph = loops()
    graph.declare({"N": Extents(2, 8, 2)})
    named = substituted(graph, {"N": symbol("rows")})
    assert named.bounds["rows"] == (2, 8) and "N" not in named.bounds
    assert named.declared == {"rows": Extents(2, 8, 2)}
    halves = substituted(graph, {"N": 2 * symbol("half")})
    assert not {"N", "half"} & halves.bounds.keys() and halves.declared == {}


def test_an_input_takes_other_dims_for_the_same_graph() -> None:
    graph = substituted(loops(), {"N": 2 * symbol("half")})
    reshape_input(graph, 0, (symbol("rows"), 4))
    verify_structure(graph)
    assert graph.symbols() == ("rows",)


def test_a_plan_chooses_by_its_extents() -> None:
    graph = loops()
    special = special_graphs(graph, {"N": [2, 6]})
    for made in (graph, *(other for _, other in special)):
        run_phases(made)
    plan = make_plan(graph, "loops", special=special)
    verify_plan(plan)
    assert print_ir(plan.program).count("host.when") == 2
    for rows in (2, 3, 6):
        x = np.full((rows, 4), rows, np.float32)
        np.testing.assert_array_equal(run_plan(plan, {"x": x})["y"], 8 * x)


def test_the_arena_of_a_program_counts_from_its_extents_on() -> None:
    size = bytes_from({"N": 4, "M": 2}, 100)
    got = {(n, m): evaluate(size, {"N": n, "M": m}) for n in (0, 3, 4, 9) for m in (1, 2)}
    assert got == {(n, m): 100 if n >= 4 and m >= 2 else 0 for n in (0, 3, 4, 9) for m in (1, 2)}


def test_wishes_that_cannot_be() -> None:
    with pytest.raises(OptionError, match="cannot specialise 'M'"):
        special_graphs(loops(), {"M": [1]})
    assert [dict(row) for row, _ in special_graphs(loops(), {"batch": [1, 1, 2]})] == [
        {"N": 1}, {"N": 2}
    ]  # fmt: skip
    assert special_graphs(loops(), {}) == []
