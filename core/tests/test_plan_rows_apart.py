"""Rows of results that would share the sets of a cache lie further apart."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import model

from cuvil.errors import CompileError
from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.layout import Layouts
from cuvil.plan.memory import nbytes
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases

BYTES = 4 * 6 * 1024  # of six rows
APART = BYTES + 6 * 64


def _graph(text: str, width: int = 1024) -> Graph:
    random = np.random.default_rng(0)
    shapes = {"v": (32, width), "w": (width, 16), "s": (width,)}
    used = {k: shape for k, shape in shapes.items() if f"] {k}" in text}
    constants = {k: random.standard_normal(s).astype(np.float32) / 8 for k, s in used.items()}
    graph = import_model(model(text), values=constants)
    run_phases(graph)
    return graph


def _same(graph: Graph, rows: int = 6) -> None:
    x = np.random.default_rng(1).standard_normal((rows, 32)).astype(np.float32)
    expected, got = run(graph, {"x": x}), run_plan(make_plan(graph), {"x": x})
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-4)


TWO = """g (float[6,32] x, float[32,1024] v, float[1024,16] w) => (float[6,16] y)
{ h = MatMul(x, v)  r = Relu(h)  y = MatMul(r, w) }"""
BOTH = """g (float[6,32] x, float[32,1024] v, float[1024,16] w, float[1024] s)
=> (float[6,16] y, float[6,1024] t)
{ h = MatMul(x, v)  y = MatMul(h, w)  n = LpNormalization<axis=1>(h)  t = Mul(n, s) }"""


def test_rows_that_a_product_reads_side_by_side() -> None:
    graph = _graph(TWO)
    assert make_plan(graph).arena_bytes == APART
    _same(graph)


def test_what_else_reads_them_finds_them() -> None:
    graph = _graph(BOTH)
    assert make_plan(graph).arena_bytes >= APART  # and the sums of squares
    _same(graph)


@pytest.mark.parametrize("rows", [1, 6, 40])
def test_of_any_number(rows: int) -> None:
    graph = _graph(TWO.replace("float[6,", "float[N,"))
    _same(graph, rows)


def test_results_of_the_model_are_dense() -> None:
    graph = _graph(TWO.replace("float[6,16] y)", "float[6,16] y, float[6,1024] r)"))
    assert make_plan(graph).arena_bytes < BYTES
    _same(graph)


def test_few_rows_fit_the_ways_of_a_cache() -> None:
    graph = _graph(TWO.replace("float[6,", "float[4,"))
    assert make_plan(graph).arena_bytes == 4 * 4 * 1024
    _same(graph, 4)


def test_rows_of_other_lengths_are_dense() -> None:
    graph = _graph(TWO.replace("1024", "1000"), 1000)
    assert make_plan(graph).arena_bytes == 4 * 6 * 1000
    _same(graph)


def test_the_verifier_sees_rows_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(TWO)
    verify_plan(make_plan(graph))
    monkeypatch.setattr(Layouts, "nbytes", lambda self, value: nbytes(value))
    with pytest.raises(CompileError, match=f"touches {APART - 64} bytes .* where {BYTES} lie"):
        verify_plan(make_plan(graph))


def test_results_take_the_place_of_rows_that_lie_alike() -> None:
    graph = _graph(
        """g (float[6,32] x, float[32,1024] v, float[1024,16] w) => (float[6,16] y, float[6,16] z)
        { h = MatMul(x, v)  y = MatMul(h, w)  n = ReduceMax<axes=[1]>(h)  t = Add(h, n)
          z = MatMul(t, w) }"""
    )
    plan = make_plan(graph)
    verify_plan(plan)
    assert APART <= plan.arena_bytes < APART + 1024  # and the rows' maxima
    _same(graph)
