"""The reference interpreter: symbols, control flow, and messages that name the fault's place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuvil.errors import DTypeError, InputError, RuntimeFailure, ShapeMismatchError
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Block, Region
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.control import loop_types
from cuvil.ops.interpreter import run, trace

N = symbol("N")


def start(**inputs: TensorType) -> tuple[Graph, Builder, list[Any]]:
    graph = new_graph("g", inputs, Pool())
    return graph, Builder(graph.block, graph.pool, "node_a"), list(graph.inputs)


def f32(*dims: Any) -> TensorType:
    return TensorType.of(dims, "f32")


def gather_graph() -> Graph:
    graph, b, (x, at) = start(x=f32(N, 2), at=TensorType.of((N * 2,), "i64"))
    return finish_graph(graph, {"y": b.gather(x, at, axis=0)})


def test_symbols_follow_the_inputs() -> None:
    graph = gather_graph()
    x = np.arange(6, dtype="f4").reshape(3, 2)
    got = run(graph, {"x": x, "at": np.int64([0, 1, 2, -1, 0, 0])})["y"]
    np.testing.assert_array_equal(got, x[[0, 1, 2, -1, 0, 0]])


@pytest.mark.parametrize(
    ("feeds", "error", "said"),
    [
        ({}, InputError, "missing: 'x', 'at'"),
        ({"x": np.zeros((1, 2), "f4"), "at": np.zeros(2, "i8"), "z": 1}, InputError, "'z'"),
        ({"x": np.zeros((1, 2)), "at": np.zeros(2, "i8")}, DTypeError, "'x' is float64"),
        ({"x": np.zeros(2, "f4"), "at": np.zeros(2, "i8")}, ShapeMismatchError, "rank 1"),
        ({"x": np.zeros((1, 3), "f4"), "at": np.zeros(2, "i8")}, ShapeMismatchError, "takes 2"),
        ({"x": np.zeros((3, 2), "f4"), "at": np.zeros(2, "i8")}, ShapeMismatchError, "2*N = 6"),
    ],
)
def test_wrong_feeds_are_named(feeds: dict, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as info:
        run(gather_graph(), feeds)
    assert said in str(info.value)


def test_a_failing_op_is_named() -> None:
    with pytest.raises(RuntimeFailure, match=r"cuvil\.gather of node_a"):
        run(gather_graph(), {"x": np.zeros((1, 2), "f4"), "at": np.int64([0, 7])})


def test_trace_gives_every_op() -> None:
    graph, b, (x,) = start(x=f32(N))
    finish_graph(graph, {"y": b.neg(b.exp(x))})
    names = [op.name for op, _ in trace(graph, {"x": np.zeros(2, "f4")})]
    assert names == ["cuvil.exp", "cuvil.neg"]


def test_if_runs_one_branch_and_sees_outer_values() -> None:
    graph, b, (cond, x) = start(cond=TensorType.of((), "bool"), x=f32(2))
    then, other = Block(), Block()
    inner = Builder(then, graph.pool)
    inner.yield_(inner.neg(x))
    Builder(other, graph.pool).yield_(x)
    (y,) = b.emit_regions("if", [cond], [f32(2)], [Region(then), Region(other)])
    finish_graph(graph, {"y": y})
    x_value = np.float32([1, 2])
    assert run(graph, {"cond": np.array(True), "x": x_value})["y"].tolist() == [-1, -2]
    assert run(graph, {"cond": np.array(False), "x": x_value})["y"].tolist() == [1, 2]


def loop_graph(trip: Any) -> Graph:
    """v += x[t] and v += k for t below trip; scans v before the step, and t itself."""
    graph, b, (v, k, x) = start(v=f32(1), k=f32(1), x=f32(N, 1))
    body = Block(arg_types=[f32(1)])
    inner, t = Builder(body, graph.pool), symbol("t")
    row = inner.slice(x, starts=(t, 0), steps=(1, 1), dims=(1, 1))
    row = inner.reshape(row, dims=(1,))
    number = inner.dims(dims=(t,), shape=())
    inner.yield_(inner.add(inner.add(body.args[0], k), row), body.args[0], number)
    types = loop_types([f32(1)], [f32(1), tensor_type(number)], trip)
    values = b.emit_regions("loop", [v], types, [Region(body)], trip=trip, symbol="t")
    return finish_graph(graph, dict(zip(("v_out", "scan", "steps"), values, strict=True)))


def test_loop_carries_scans_and_counts() -> None:
    graph = loop_graph(N)
    graph.module.verify()
    feeds = {"v": np.float32([10]), "k": np.float32([2]), "x": np.zeros((3, 1), "f4")}
    got = run(graph, feeds)
    assert got["v_out"].tolist() == [16]
    assert got["scan"].tolist() == [[10], [12], [14]]
    assert got["steps"].tolist() == [0, 1, 2]
    feeds["x"] = np.float32([[1], [10], [100]])
    assert run(graph, feeds)["v_out"].tolist() == [127]


def test_loop_without_iterations() -> None:
    feeds = {"v": np.float32([10]), "k": np.float32([2]), "x": np.zeros((0, 1), "f4")}
    got = run(loop_graph(N), feeds)
    assert got["v_out"].tolist() == [10] and got["scan"].shape == (0, 1)
