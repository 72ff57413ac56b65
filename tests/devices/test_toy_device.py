"""The whole contract of a device, on one whose memory the host cannot use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import toy
from onnx import TensorProto, helper, numpy_helper

from cuvil.engine.engine import Engine
from cuvil.frontends.onnx import import_model
from cuvil.ops.interpreter import run as interpret
from cuvil.options import Options
from cuvil.pipeline import Built, compile_graph
from cuvil.targets import registry
from cuvil_runtime import load_object

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> toy.Toy:
    return toy.Toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found = registry.backends()
    monkeypatch.setattr(registry, "backends", lambda: (*found, toy.BACKEND))
    yield


def mlp(rng: np.random.Generator, batch: int | str) -> bytes:
    """softmax(relu(x w1 + b1) w2), x of [batch, 8]."""
    weights = {
        "w1": rng.standard_normal((8, 16)),
        "b1": rng.standard_normal(16),
        "w2": rng.standard_normal((16, 5)),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["p"], name="first"),
        helper.make_node("Add", ["p", "b1"], ["q"]),
        helper.make_node("Relu", ["q"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["s"], name="second"),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    return model(nodes, {"x": [batch, 8]}, {"y": [batch, 5]}, weights)


def model(
    nodes: list[Any],
    inputs: dict[str, list[int | str]],
    outputs: dict[str, list[int | str]],
    weights: dict[str, Array] | None = None,
) -> bytes:
    def ports(items: dict[str, list[int | str]]) -> list[Any]:
        return [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in items.items()
        ]

    constants = [
        numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in (weights or {}).items()
    ]
    graph = helper.make_graph(nodes, "mlp", ports(inputs), ports(outputs), constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def build(source: bytes, target: str = "toy,cpu") -> Built:
    return compile_graph(import_model(source), Options(target=target), weights_file="weights.bin")


def load(built: Built, shim: toy.Toy, folder: Path) -> Engine:
    built.write_object(folder / "model.o")
    weights = None
    if built.plan.weights_bytes:
        weights = folder / "weights.bin"
        built.write_weights(weights)
    code = (folder / "model.o").read_bytes()
    return Engine(load_object(code, weights=weights, devices={"toy": shim.device}))


def agrees(engine: Engine, source: bytes, feeds: dict[str, Array]) -> None:
    want = interpret(import_model(source), feeds)
    got = engine.run(None, feeds)
    for port, value in zip(engine.get_outputs(), got, strict=True):
        np.testing.assert_allclose(value, want[port.name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch", [3, "B"])
def test_products_run_there_and_all_else_here(
    batch: int | str, shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    source = mlp(rng, batch)
    engine = load(build(source), shim, tmp_path)
    assert shim.took() == {"uploads": 1, "downloads": 0, "copies": 0, "launches": 0}  # constants
    for rows in (3,) if batch == 3 else (3, 1, 200):
        agrees(engine, source, {"x": rng.standard_normal((rows, 8)).astype(np.float32)})
        assert shim.took() == {"uploads": 2, "downloads": 2, "copies": 0, "launches": 2}
