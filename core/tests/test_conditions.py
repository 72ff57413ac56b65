"""What extents must satisfy: stated where not proved, checked before a kernel can go astray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import cuvil.ops  # noqa: F401 - registers the primitives
from cuvil.errors import RuntimeFailure
from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim, symbol
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.plan.conditions import conditions
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan

A, B = symbol("A"), symbol("B")


def graph(shapes: Sequence[Sequence[Dim]], build: Callable[..., Any]) -> Graph:
    """A graph of f32 inputs x0, x1, ... of these shapes and one output."""
    made = new_graph("g", {f"x{i}": TensorType.of(s, "f32") for i, s in enumerate(shapes)}, Pool())
    result = build(Builder(made.block, made.pool), *made.inputs)
    return finish_graph(made, {"y": result})


def said(made: Graph) -> list[str]:
    return [str(c) for op in made.ops() for c in conditions(op, made.bounds)]


@pytest.mark.parametrize(
    ("shapes", "build", "expected"),
    [
        ([[A], [A]], lambda b, x, y: b.add(x, y), []),
        ([[A], [1]], lambda b, x, y: b.add(x, y), []),
        ([[A], [B]], lambda b, x, y: b.add(x, y), ["B == A"]),
        ([[A], [7]], lambda b, x, y: b.add(x, y), ["A == 7"]),
        ([[2, A], [B, 3]], lambda b, x, y: b.contract(x, y, spec="mk,kn->mn"), ["B == A"]),
        ([[A, 4]], lambda b, x: b.reshape(x, dims=(2 * A, 2)), []),
        ([[A, 4]], lambda b, x: b.reshape(x, dims=(3, 4)), ["4*A == 12"]),
        ([[A, 2], [A, B]], lambda b, x, y: b.concat(x, y, axis=0), ["B == 2"]),
        ([[A]], lambda b, x: b.slice(x, starts=[0], steps=[1], dims=[A]), []),
        ([[A]], lambda b, x: b.slice(x, starts=[2], steps=[1], dims=[A - 2]), ["A - 2 >= 0"]),
        ([[A]], lambda b, x: b.slice(x, starts=[0], steps=[1], dims=[3]), ["A - 3 >= 0"]),
        ([[A]], lambda b, x: b.arg_reduce(x, kind="max", axis=0), ["A >= 1"]),
    ],
)
def test_conditions(shapes, build, expected):
    assert said(graph(shapes, build)) == expected


def test_known_ranges_are_proof_enough():
    made = graph([[A]], lambda b, x: b.slice(x, starts=[2], steps=[1], dims=[A - 2]))
    made.bounds["A"] = (5, None)
    assert said(made) == []


def test_a_run_checks_them_before_any_kernel():
    plan = make_plan(graph([[A], [B]], lambda b, x, y: b.add(x, y)))
    three, four = np.ones(3, np.float32), np.ones(4, np.float32)
    np.testing.assert_array_equal(run_plan(plan, {"x0": three, "x1": three})["y"], 2 * three)
    with pytest.raises(RuntimeFailure, match="B == A"):
        run_plan(plan, {"x0": three, "x1": four})
