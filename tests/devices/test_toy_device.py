"""The whole contract of a device, on one whose memory the host cannot use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_models import Array, Shapes, did, floats, mlp, model, tool
from onnx import TensorProto, helper

import cuvil_backend_toy as toy
from cuvil.engine.engine import Engine
from cuvil.errors import RuntimeFailure
from cuvil.frontends.onnx import import_model
from cuvil.ops.interpreter import run as interpret
from cuvil.options import Options
from cuvil.pipeline import Built, compile_graph
from cuvil.plan.interpreter import run_plan
from cuvil_runtime import load_object


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
    assert shim.took() == did(1, 0, 0)  # the constants, once
    for rows in (3,) if batch == 3 else (3, 1, 200, 0, 2):
        agrees(engine, source, {"x": floats(rng, rows, 8)})
        moves = 2 if rows else 0
        assert shim.took() == did(moves, moves, 2)


def test_what_a_device_made_stays_there(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Two products with a reshape between them, the first one used by both sides and given out."""
    weights = {"w1": floats(rng, 8, 6), "w2": floats(rng, 3, 5), "to": np.array([-1, 3])}
    nodes = [
        tool("MatMul", "x", "w1", out="p"),
        tool("Reshape", "p", "to", out="q"),
        tool("MatMul", "q", "w2", out="r"),
        tool("Relu", "p", out="s"),
        tool("Tanh", "p", out="t"),
    ]
    outputs: Shapes = {"p": ["B", 6], "r": ["N", 5], "s": ["B", 6], "t": ["B", 6]}
    source = model(nodes, {"x": ["B", 8]}, outputs, weights)
    engine = load(build(source), shim, tmp_path)
    shim.took()
    agrees(engine, source, {"x": floats(rng, 4, 8)})
    assert shim.took() == did(1, 2, 2)


def test_an_operand_is_uploaded_once(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    nodes = [
        tool("Exp", "x", out="e"),
        tool("MatMul", "e", "w", out="p"),
        tool("MatMul", "e", "v", out="q"),
        tool("Sub", "p", "q", out="y"),
    ]
    weights = {"w": floats(rng, 2, 8, 5), "v": floats(rng, 2, 8, 5)}
    source = model(nodes, {"x": [2, 3, 8]}, {"y": [2, 3, 5]}, weights)
    engine = load(build(source), shim, tmp_path)
    shim.took()
    agrees(engine, source, {"x": floats(rng, 2, 3, 8)})
    assert shim.took()["uploads"] == 1


def branch(name: str, nodes: list[Any], out: str) -> Any:
    port = helper.make_tensor_value_info(out, TensorProto.FLOAT, ["B", 8])
    return helper.make_graph(nodes, name, [], [port])


def test_branches_use_what_lies_on_either_side(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    """p is on the device: one branch wants it there, the other here, and so does what follows."""
    then = branch("then", [tool("MatMul", "p", "w2", out="t")], "t")
    orelse = branch("orelse", [tool("Tanh", "p", out="e")], "e")
    nodes = [
        tool("MatMul", "x", "w1", out="p"),
        tool("ReduceSum", "x", out="sum", keepdims=0),
        tool("Greater", "sum", "zero", out="c"),
        tool("If", "c", out="i", then_branch=then, else_branch=orelse),
        tool("Add", "i", "p", out="y"),
    ]
    weights = {"w1": floats(rng, 8, 8), "w2": floats(rng, 8, 8), "zero": np.float32(0)}
    source = model(nodes, {"x": ["B", 8]}, {"y": ["B", 8]}, weights)
    engine = load(build(source), shim, tmp_path)
    for sign in (1, -1):
        agrees(engine, source, {"x": sign * np.abs(floats(rng, 5, 8))})


def test_loops_carry_values_through_the_host(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    """h = tanh(h w) five times, w known to the device and a product from outside added."""
    body = helper.make_graph(
        [
            tool("MatMul", "h", "w", out="p"),
            tool("Add", "p", "outside", out="q"),
            tool("Tanh", "q", out="next"),
            tool("Identity", "go", out="on"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, ["B", 8]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, ["B", 8]),
        ],
    )
    nodes = [
        tool("MatMul", "x", "v", out="outside"),
        helper.make_node("Constant", [], ["five"], value_int=5),
        helper.make_node("Loop", ["five", "", "x"], ["y"], body=body, name="loop"),
    ]
    weights = {"w": floats(rng, 8, 8), "v": floats(rng, 8, 8)}
    source = model(nodes, {"x": ["B", 8]}, {"y": ["B", 8]}, weights)
    engine = load(build(source), shim, tmp_path)
    shim.took()
    agrees(engine, source, {"x": floats(rng, 3, 8)})
    assert shim.took()["launches"] == 6


def random_nodes(rng: np.random.Generator, count: int) -> tuple[list[Any], list[str]]:
    """Ops over [B, 8] tensors, each of earlier ones; their names."""
    names = ["x"]
    nodes = []
    for i in range(count):
        kind = rng.choice(["MatMul", "Add", "Mul", "Tanh", "Softmax"])
        first, second = rng.choice(names[-4:], 2)
        operands = {"MatMul": (first, "w"), "Add": (first, second), "Mul": (first, second)}
        nodes.append(tool(kind, *operands.get(kind, (first,)), out=f"v{i}"))
        names.append(f"v{i}")
    return nodes, names[1:]


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int, shim: toy.Toy, tmp_path: Path) -> None:
    """The device works only when it is waited for: a missing wait or early reuse would show."""
    rng = np.random.default_rng(seed)
    nodes, names = random_nodes(rng, 24)
    wanted: Shapes = {n: ["B", 8] for n in (names[-1], *names[5::7])}
    source = model(nodes, {"x": ["B", 8]}, wanted, {"w": floats(rng, 8, 8) / 3})
    built = build(source)
    feeds = {"x": floats(rng, 5, 8)}
    want = interpret(import_model(source), feeds)
    planned = run_plan(built.plan, feeds)
    for name, value in want.items():
        np.testing.assert_allclose(planned[name], value, rtol=1e-4, atol=1e-5)
    engine = load(built, shim, tmp_path)
    for _ in range(2):
        agrees(engine, source, feeds)


def test_a_profile_has_transfers_and_launches(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    engine = load(build(mlp(rng, 3)), shim, tmp_path)
    rows = [(r.kernel, r.nodes) for r in engine.profile({"x": floats(rng, 3, 8)})[1]]
    assert rows[:3] == [("upload", "input"), ("toy0_contract", "first"), ("download", "first")]
    assert ("toy1_contract", "second") in rows


def test_a_failure_names_node_device_and_reason(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    source = mlp(rng, 3)
    engine = load(build(source), shim, tmp_path)
    feeds = {"x": floats(rng, 3, 8)}
    shim.counts.fail_launches = 1
    with pytest.raises(RuntimeFailure, match=r"first: device 'toy': out of toys"):
        engine.run(None, feeds)
    shim.counts.fail_launches = 0
    agrees(engine, source, feeds)


def test_closing_a_model_gives_everything_back(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    engine = load(build(mlp(rng, "B")), shim, tmp_path)
    engine.run(None, {"x": floats(rng, 3, 8)})
    held = ("opened", "allocated", "queues", "loaded")
    before = {name: getattr(shim.counts, name) for name in held}
    engine.model.close()
    freed = {name: before[name] - getattr(shim.counts, name) for name in held}
    assert freed == {"opened": 1, "allocated": 2, "queues": 1, "loaded": 2}
