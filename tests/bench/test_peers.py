"""Peers run the same model to the same outputs, and say clearly why they cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tools.bench import peers

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x) + x over [n, 4]."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "relu_add", values[:1], values[1:])
    path = tmp_path / "relu_add.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_outputs_and_settings(name: str, model: Path):
    if reason := peers.peer(name).missing():
        pytest.skip(reason)
    call = peers.peer(name).load(model, {"x": X}, threads=1)
    call()
    np.testing.assert_allclose(call.outputs()[0], np.maximum(X, 0) + X)
    assert "threads 1" in call.settings


def test_bound_inputs_are_read_at_every_call(model: Path):
    x = X.copy()
    call = peers.peer("onnxruntime").load(model, {"x": x})
    x *= 2
    call()
    np.testing.assert_allclose(call.outputs()[0], np.maximum(x, 0) + x)


def test_torch_runs_the_module_behind_the_model(model: Path):
    torch = pytest.importorskip("torch")

    class ReluAdd(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x) + x

    call = peers.peer("torch").load(model, {"x": X}, net=ReluAdd)
    np.testing.assert_allclose(call.outputs()[0], np.maximum(X, 0) + X)
    with pytest.raises(peers.PeerError, match="needs a module"):
        peers.peer("torch").load(model, {"x": X})


def test_a_missing_engine_says_how_to_get_it(model: Path):
    absent = peers.Peer("absent", "no_such_engine", lambda *_: pytest.fail("never loaded"))
    assert "pip install no_such_engine" in str(absent.missing())
    with pytest.raises(peers.PeerError, match="not installed"):
        absent.load(model, {"x": X})


def test_an_engine_that_refuses_names_itself_and_the_file(tmp_path: Path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(peers.PeerError, match=r"onnxruntime cannot run .*broken\.onnx"):
        peers.peer("onnxruntime").load(broken, {"x": X})
    with pytest.raises(peers.PeerError, match="there are onnxruntime"):
        peers.peer("nonesuch")
