"""What is allowed of an engine's outputs, for models of floats and of bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tools.bench.judge import errors
from tools.models.case import ModelCase, Tolerance
from tools.models.zoo import FP32, TOLERANCE_OF_BYTES

X = {"x": np.array([1.0, 4.0], np.float32)}


def case(folder: Path, tolerance: Tolerance) -> ModelCase:
    """y = x."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return ModelCase("m", "m", path, (), tolerance)


def off_by(distance: float) -> list[np.ndarray]:
    return [X["x"] + np.float32(distance)]


def test_floats_are_held_to_onnx_runtimes(tmp_path):
    outputs = {"onnxruntime": off_by(1.0), "cuvil": off_by(1.0), "openvino": off_by(2.0)}
    found = errors(case(tmp_path, FP32), X, outputs, FP32)
    assert found["cuvil"] == 0
    assert found["openvino"] > 1


def test_bytes_may_be_as_far_from_the_file_as_onnx_runtimes_are(tmp_path):
    outputs = {"onnxruntime": off_by(1.0), "cuvil": off_by(0.5), "openvino": off_by(2.0)}
    found = errors(case(tmp_path, TOLERANCE_OF_BYTES), X, outputs, TOLERANCE_OF_BYTES)
    assert found == {"onnxruntime": 1, "cuvil": 0.5, "openvino": 2}


def test_bytes_are_held_to_the_tolerance_where_onnx_runtime_is_nearer(tmp_path):
    outputs = {"onnxruntime": off_by(0.0), "cuvil": off_by(0.045), "openvino": off_by(0.18)}
    found = errors(case(tmp_path, TOLERANCE_OF_BYTES), X, outputs, TOLERANCE_OF_BYTES)
    assert found["cuvil"] == pytest.approx(0.5, rel=1e-3)
    assert found["openvino"] == pytest.approx(2, rel=1e-3)


def test_without_onnx_runtime_nothing_is_known(tmp_path):
    assert errors(case(tmp_path, FP32), X, {"cuvil": off_by(0)}, FP32) == {"cuvil": None}
