"""Pads as kernels: borders around what lies inside already, images that are copied, in parts."""

from __future__ import annotations

import numpy as np
import pytest

from cuvil.ir.build import Builder
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan

SMALL, LARGE = (2, 5, 4, 3), (2, 30, 31, 24)
BORDERS = [
    ((0, 1, 1, 0), (0, 2, 1, 0)),
    ((0, 0, 1, 0), (0, 0, 0, 0)),
    ((1, 0, 0, 0), (0, 0, 0, 3)),
    ((0, 5, 0, 0), (0, 0, 0, 0)),
    ((0, 0, 0, 0), (0, 40, 0, 0)),
]


@pytest.mark.parametrize("dims", [SMALL, LARGE])
@pytest.mark.parametrize(("low", "high"), BORDERS)
@pytest.mark.parametrize("inside", [True, False])
def test_border_and_image(dims, low, high, inside):
    graph = new_graph("g", {"x": TensorType.of(dims, "f32")}, Pool())
    b = Builder(graph.block, graph.pool)
    image = b.exp(graph.inputs[0]) if inside else graph.inputs[0]
    finish_graph(graph, {"y": b.pad(image, b.scalar(7, "f32"), low=low, high=high)})
    x = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    expected, got = run(graph, {"x": x})["y"], run_plan(make_plan(graph), {"x": x})["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-6)
