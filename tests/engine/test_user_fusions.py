"""`@cuvil.fusion_pattern`: what is met becomes one kernel, what is not is told with its nearest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import cuvil
from cuvil.rewrite.user import PATTERNS


@pytest.fixture(autouse=True)
def _no_patterns() -> Iterator[None]:
    yield
    PATTERNS.clear()


def _model(activation: str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node(activation, ["s"], ["y"]),
    ]
    weights = [
        onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (8, 16)), ("b", (16,)))
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 16])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def _register() -> None:
    @cuvil.fusion_pattern("matmul_add_gelu")
    def matmul_add_gelu(a, b, c):  # type: ignore[no-untyped-def]
        return cuvil.op.gelu(cuvil.op.matmul(a, b) + c)


def test_a_pattern_that_is_met_is_one_kernel() -> None:
    _register()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine = cuvil.compile(_model("Gelu"))
    _, launches = engine.profile({"x": np.ones((3, 8), np.float32)})
    assert len(launches) == 1


def test_a_pattern_that_is_not_met_says_what_is_nearest() -> None:
    _register()
    with pytest.warns(UserWarning, match="matmul_add_gelu.*matches nothing; nearest"):
        cuvil.compile(_model("Relu"))
