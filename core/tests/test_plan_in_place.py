"""Values that share memory: pointwise results over their operands, parts inside a whole."""

from __future__ import annotations

import numpy as np
import onnx

from cuvil.frontends.onnx import import_model
from cuvil.ir.build import Builder
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Value
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan

ROWS, COLUMNS = 8, 64
BYTES = 4 * ROWS * COLUMNS


def _centred(b: Builder, x: Value) -> Value:
    mean = b.reduce(x, kind="mean", axes=(1,), keepdims=True)
    return b.sub(x, mean)


def _graph(build: object) -> Graph:
    graph = new_graph("g", {"x": TensorType.of((ROWS, COLUMNS), "f32")}, Pool())
    b = Builder(graph.block, graph.pool)
    return finish_graph(graph, {"y": build(b, graph.inputs[0])})  # type: ignore[operator]


def _same(graph: Graph) -> None:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    expected, got = run(graph, {"x": x})["y"], run_plan(make_plan(graph), {"x": x})["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_result_takes_the_buffer_of_an_operand_that_nobody_reads_again() -> None:
    graph = _graph(lambda b, x: _centred(b, _centred(b, b.exp(x))))
    assert make_plan(graph).arena_bytes < 2 * BYTES
    _same(graph)


def test_an_operand_that_is_read_again_is_kept() -> None:
    def build(b: Builder, x: Value) -> Value:
        kept = b.exp(x)
        return b.add(
            _centred(b, _centred(b, kept)), b.transpose(b.transpose(kept, perm=(1, 0)), perm=(1, 0))
        )

    _same(_graph(build))


def test_parts_of_a_concatenation_are_written_inside_it() -> None:
    def build(b: Builder, x: Value) -> Value:
        halves = b.concat(_centred(b, x), _centred(b, b.exp(x)), axis=1)
        return b.reduce(halves, kind="max", axes=(1,))

    graph = _graph(build)
    assert "concat" not in " ".join(make_plan(graph).kernels)
    _same(graph)


def test_an_image_is_written_inside_its_pads() -> None:
    def build(b: Builder, x: Value) -> Value:
        zero = b.scalar(0, "f32")
        padded = b.pad(_centred(b, x), zero, low=(0, 2), high=(1, 3), mode="constant")
        return b.reduce(padded, kind="max", axes=(1,))

    _same(_graph(build))


def test_a_slice_is_read_where_it_lies() -> None:
    def build(b: Builder, x: Value) -> Value:
        whole = b.exp(x)
        left = b.slice(whole, starts=(0, 0), steps=(1, 1), dims=(ROWS, 24))
        return b.contract(left, left, spec="ik,jk->ij")

    _same(_graph(build))


def test_a_result_is_not_written_over_what_its_kernel_reads_elsewhere_too() -> None:
    def build(b: Builder, x: Value) -> Value:
        whole = _centred(b, x)
        flat = b.reshape(whole, dims=(ROWS * COLUMNS,))
        row = b.slice(flat, starts=(0,), steps=(1,), dims=(COLUMNS,))
        most = b.reduce(row, kind="max", axes=(0,))
        return _centred(b, b.add(b.add(whole, row), most))

    graph = _graph(build)
    _same(graph)


def test_a_loop_keeps_what_it_reads_anew_in_every_iteration() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[8, 8] x) => (float[8, 8] z) <int64 n = {3}, bool go = {1}> {
          y = MatMul(x, x)
          z = Loop(n, go, x) <body = one (int64 i, bool c, float[8, 8] s)
            => (bool again, float[8, 8] next) {
              again = Identity(c)
              t = Mul(y, s)
              u = Transpose(t)
              next = MatMul(t, u)
          }>
        }""")
    graph = import_model(model)
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    expected, got = run(graph, {"x": x})["z"], run_plan(make_plan(graph), {"x": x})["z"]
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_a_chain_of_any_length_is_cut_into_kernels() -> None:
    def build(b: Builder, x: Value) -> Value:
        for _ in range(500):
            x = b.neg(x)
        return b.abs(x)

    graph = _graph(build)
    assert len(make_plan(graph).kernels) > 1
    _same(graph)
