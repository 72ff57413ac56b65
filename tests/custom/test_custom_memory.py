"""Random graphs around custom operators: what these write is never what they read.

The C functions say so themselves: they fail where buffers overlap, and fill their result with
garbage before they look at the operands (see acme.c).
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuvil.engine.front_door import compile_engine
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Value
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.ops import interpreter
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases
from tests.custom.acme import SOURCE, blend

ROWS = 5
STEPS = 14


def step(b: Builder, pick: random.Random, values: list[Value]) -> Value:
    """One more value of [N, 8] from earlier ones."""
    x, y = pick.choice(values), pick.choice(values)
    kind = pick.randrange(8)
    if kind < 3:
        return b.com_acme_Blend(x, y, gain=pick.choice([0.5, -1.0]))
    if kind == 3:
        return b.min(b.max(b.add(x, y), b.scalar(-4, x)), b.scalar(4, x))
    if kind == 4:
        return b.tanh(x)
    if kind == 5:
        return b.softmax(x, axis=1)
    halves = [
        b.slice(v, starts=(0, at), steps=(1, 1), dims=(b.dims_of(v)[0], 4))
        for v, at in ((x, 0), (y, 4))
    ]
    if kind == 6:
        return b.concat(*halves, axis=1)
    return b.concat(b.com_acme_Blend(*halves), b.neg(halves[0]), axis=1)


def random_graph(seed: int) -> Graph:
    """A graph of [N, 8] tensors, several of them outputs."""
    pick = random.Random(seed)
    kind = TensorType.of((symbol("N"), 8), "f32")
    graph = new_graph(f"random{seed}", {"x": kind, "y": kind}, Pool())
    b = Builder(graph.block, graph.pool)
    values = list(graph.inputs)
    for _ in range(STEPS):
        values.append(step(b, pick, values))
    made = values[2:]
    outputs = {made[-1], *pick.sample(made, 2)}
    return finish_graph(graph, {f"o{i}": v for i, v in enumerate(made) if v in outputs})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_written_is_never_what_is_read(seed: int, rng: np.random.Generator) -> None:
    blend(source=SOURCE)
    feeds = {n: rng.standard_normal((ROWS, 8)).astype(np.float32) for n in "xy"}
    expected = interpreter.run(random_graph(seed), feeds)
    graph = random_graph(seed)
    run_phases(graph)
    plan = make_plan(graph)
    verify_plan(plan)
    engine = compile_engine(random_graph(seed), Options())
    compiled = dict(zip(expected, engine.run(list(expected), feeds), strict=True))
    for got in (run_plan(plan, feeds), compiled):
        for name, array in expected.items():
            np.testing.assert_allclose(got[name], array, rtol=2e-4, atol=2e-4)
