"""The order of kernels: each finds what it reads, and memory is never more than in the graph's."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_models import model

from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.order import Task, best_order, cost_of
from cuvil.plan.plan import Plan, make_plan
from cuvil.plan.verify import verify_plan

SIZE = 64
BRANCHES = 4


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Task], list[int], list[int]]:
    """Up to five tasks: each writes a buffer of its own and reads some of those before."""
    count = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    tasks = []
    for number in range(count):
        reads = draw(st.sets(st.integers(0, number - 1))) if number else set()
        over = draw(st.sets(st.sampled_from(sorted(reads)))) if reads else set()
        after = sum(1 << read for read in reads)
        tasks.append(Task(after, (*sorted(reads), number), sorted(over)))
    kept = draw(st.sets(st.integers(0, count - 1)))
    return tasks, sizes, sorted(kept)


def can_run(order: tuple[int, ...], tasks: list[Task]) -> bool:
    done = 0
    for number in order:
        if tasks[number].after & ~done:
            return False
        done |= 1 << number
    return True


@settings(max_examples=100)
@given(graphs())
def test_few_tasks_run_in_the_order_that_needs_least(
    made: tuple[list[Task], list[int], list[int]],
) -> None:
    tasks, sizes, kept = made
    order = best_order(tasks, sizes, kept)
    assert sorted(order) == list(range(len(tasks))) and can_run(order, tasks)
    orders = [o for o in permutations(range(len(tasks))) if can_run(o, tasks)]
    least = min(cost_of(o, tasks, sizes, kept).peak for o in orders)
    assert cost_of(order, tasks, sizes, kept).peak == least


def test_tasks_stay_where_no_order_is_better() -> None:
    chain = [Task(), Task(1, (0,)), Task(2, (0,))]
    assert best_order(chain, [8]) == (0, 1, 2)
    assert best_order([], []) == ()


def branches() -> Graph:
    """All wide tensors first, then what makes them small: as no exporter should."""
    names = range(BRANCHES)
    wide = "\n".join(f"w{k} = Softmax<axis = {k % 2}>(x)\n v{k} = Exp(w{k})" for k in names)
    small = "\n".join(f"s{k} = ReduceMax<keepdims = 1>(v{k}, axis)" for k in names)
    parts = ", ".join(f"s{k}" for k in names)
    text = f"g (float[{SIZE}, {SIZE}] x, int64[1] axis) => (float[{SIZE}, {BRANCHES}] y)"
    text += f" {{ {wide}\n{small}\ny = Concat<axis = 1>({parts}) }}"
    return import_model(model(text, opset=18), values={"axis": np.array([1])})


def arena(plan: Plan) -> int:
    verify_plan(plan)
    assert isinstance(plan.arena_bytes, int)
    return plan.arena_bytes


def test_a_branch_ends_before_the_next_begins() -> None:
    graph, wide = branches(), SIZE * SIZE * 4
    usual, plan = make_plan(graph, schedule=False), make_plan(graph)
    assert arena(usual) >= BRANCHES * wide
    assert arena(plan) < 3 * wide
    x = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    np.testing.assert_array_equal(run_plan(plan, {"x": x})["y"], run_plan(usual, {"x": x})["y"])
    np.testing.assert_allclose(run_plan(plan, {"x": x})["y"], run(graph, {"x": x})["y"], rtol=1e-6)


def test_filled_weights_are_there_when_they_are_read() -> None:
    layers = "\n".join(f"y{k + 1} = MatMul(y{k}, w{k})" for k in range(3))
    fills = "\n".join(f"w{k} = ConstantOfShape<value = float[1] {{0.5}}>(shape)" for k in range(3))
    text = f"g (float[{SIZE}, {SIZE}] y0, int64[2] shape) => (float[{SIZE}, {SIZE}] y3)"
    square = np.array([SIZE, SIZE])
    graph = import_model(model(f"{text} {{ {fills}\n{layers} }}"), values={"shape": square})
    plan = make_plan(graph)
    arena(plan)
    x = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    np.testing.assert_allclose(run_plan(plan, {"y0": x})["y3"], run(graph, {"y0": x})["y3"], 1e-5)
