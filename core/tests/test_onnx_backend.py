"""Cuvil as an ONNX backend."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import InterpreterBackend, f32, i64, model

from cuvil.errors import InputError


def test_inputs_by_position_and_by_name():
    rep = InterpreterBackend.prepare(model("m (float[N] x, float[N] z) => (y) { y = Sub(x, z) }"))
    assert rep.run([f32([3]), f32([1])])[0].tolist() == [2]
    assert rep.run({"z": f32([3]), "x": f32([1])})[0].tolist() == [-2]
    with pytest.raises(InputError, match="3 inputs, the model has 2"):
        rep.run([f32([1])] * 3)


def test_a_shape_input_is_compiled_for_its_values():
    rep = InterpreterBackend.prepare(
        model("m (float[2, 3] x, int64[2] s) => (y) { y = Reshape(x, s) }")
    )
    x = np.ones((2, 3), np.float32)
    assert rep.run([x, i64([3, 2])])[0].shape == (3, 2)
    assert rep.run([x, i64([-1, 1])])[0].shape == (6, 1)


def test_run_node():
    node = onnx.helper.make_node("Clip", ["x", "", "high"], ["y"])
    assert InterpreterBackend.run_node(node, [f32([-1, 5]), f32(2)])[0].tolist() == [-1, 2]


def test_devices():
    assert InterpreterBackend.supports_device("CPU")
    assert not InterpreterBackend.supports_device("CUDA")
