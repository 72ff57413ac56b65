"""The same functions as kernels of a model: denormals flushed, as runs do, and every length."""

from __future__ import annotations

import numpy as np
import pytest

import cuvil.ops  # noqa: F401  registers the primitives
from cuvil.engine.front_door import compile_engine
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.ops.scalars import evaluate, scalar
from cuvil.options import Options
from tools.numerics.builds import builds, unary_rows
from tools.numerics.samples import ulp_errors
from tools.numerics.sweep import different_bits, patterns, rules_of

NAMES = [row.name for row in unary_rows("f32") if not row.exact] + ["sqrt", "reciprocal", "round"]
LEAST = 2.0**-126


@pytest.fixture(scope="module")
def engine():
    """All functions of one input of any length."""
    graph = new_graph("functions", {"x": TensorType.of((symbol("n"),), "f32")}, Pool())
    b = Builder(graph.block, graph.pool, "functions")
    results = {name: b.emit(name, [graph.inputs[0]]) for name in NAMES}
    return compile_engine(finish_graph(graph, results), Options(), threads=1)


@pytest.fixture(scope="module")
def sample():
    drawn = np.random.default_rng(3).standard_normal(4096) * 8
    return np.concatenate([drawn.astype(np.float32), *patterns(65535)])


@pytest.fixture(scope="module")
def results(engine, sample):
    return dict(zip(NAMES, engine.run(NAMES, {"x": sample}), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_flushed_denormals_may_be_zeros_and_nothing_else(results, sample, name):
    """A composition multiplies what was flushed inside it by its operand."""
    row, rules = scalar(name), rules_of(name, builds()[-1].facts.fma)
    with np.errstate(all="ignore"):
        size = np.maximum(1, np.abs(sample.astype(np.float64)))
        flushed = np.where(np.abs(sample) < LEAST, np.copysign(0, sample), sample)
        exact = evaluate(name, flushed.astype(np.float64))
        slack = rules.slack * 2.0**-23 * size + 2 * LEAST * (size if row.expansion else 1)
        slack = np.where(np.abs(exact) < 4 * LEAST * size, slack, rules.slack * 2.0**-23 * size)
    near = ~(np.abs(sample) > rules.far)
    value = results[name]
    assert ulp_errors(value[near], exact[near], slack[near]).max() <= max(row.ulp, 0.5)
    assert not ((value < rules.low) | (value > rules.high)).any()


@pytest.mark.parametrize("length", [1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 129])
def test_the_length_changes_no_bits(engine, results, sample, length):
    parts = engine.run(NAMES, {"x": np.ascontiguousarray(sample[:length])})
    for name, part in zip(NAMES, parts, strict=True):
        assert different_bits(part, np.ascontiguousarray(results[name][:length])) == 0, name
