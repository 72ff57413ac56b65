"""What fuzzing has found, each case by itself."""

from __future__ import annotations

import numpy as np

from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan


def test_a_product_without_columns_on_the_interpreter_of_plans() -> None:
    graph = new_graph("g", {"x": TensorType.of((symbol("B"), 3), "f32")}, Pool())
    b = Builder(graph.block, graph.pool)
    y = b.contract(graph.inputs[0], b.const(np.zeros((3, 0), np.float32)), spec="mk,kn->mn")
    plan = make_plan(finish_graph(graph, {"y": y}))
    for rows in (0, 2):
        assert run_plan(plan, {"x": np.ones((rows, 3), np.float32)})["y"].shape == (rows, 0)
