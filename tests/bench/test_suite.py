"""The fixed list, the arithmetic that its models ask for, and one of them measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tools.bench.flops import model_flops
from tools.bench.suite import Row, Rules, fixed_list, measure_dynamic, measure_speed
from tools.models import zoo


def test_the_list_has_one_model_for_each_architecture():
    assert sorted(fixed_list("speed")) == sorted(zoo.representatives())
    assert all(zoo.row(name).feeds for name in fixed_list("dynamic"))


def save(path: Path, nodes: list[onnx.NodeProto], shape: list[int | str], **weights) -> Path:
    """A model of one input x and one output y, each float32, with these initializers."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_flops_of_a_product(tmp_path: Path):
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = save(tmp_path / "m.onnx", [node], ["n", 8], w=np.ones((8, 3), np.float32))
    assert model_flops(path, {"x": np.ones((5, 8), np.float32)}) == 2 * 5 * 8 * 3


def test_flops_of_a_grouped_convolution(tmp_path: Path):
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=2)
    path = save(tmp_path / "m.onnx", [node], [1, 4, 6, 6], w=np.ones((8, 2, 3, 3), np.float32))
    assert model_flops(path, {"x": np.ones((1, 4, 6, 6), np.float32)}) == 2 * (8 * 4 * 4) * (2 * 9)


def test_flops_of_branches_are_those_of_the_dearest():
    case = zoo.get("silero-vad")  # 16 kHz and 8 kHz: two networks of unlike size
    assert model_flops(case.path, case.inputs(0)) == 1_359_104


def test_a_model_beside_its_peer():
    row = measure_speed("silero-vad", Rules(seconds=0.1, peers=("onnxruntime", "torch")))
    assert list(row.engines) == ["cuvil", "onnxruntime"]  # torch has no such module
    assert row.engines["onnxruntime"].ratio > 0
    assert row.engines["cuvil"].error <= 1
    assert 0 < row.weights_bytes < row.file_bytes
    assert Row.from_json(json.loads(json.dumps(row.to_json()))) == row


def test_a_model_with_its_dims_free_and_fixed():
    row = measure_dynamic("magika", Rules(seconds=0.1))
    assert list(row.engines) == ["cuvil", "fixed"]


def test_an_unknown_model_is_an_error():
    with pytest.raises(zoo.ZooError, match="no zoo model"):
        measure_speed("nonesuch", Rules())
