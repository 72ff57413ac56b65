"""Quantised models: the codes of every build are ONNX Runtime's, or their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import cuvil
from cuvil.engine.front_door import runnable_variants
from cuvil.frontends.onnx import import_model
from cuvil.ir import nest
from cuvil.options import Options
from cuvil.pipeline import compile_graph
from cuvil.targets.registry import find

RNG = np.random.default_rng(3)
KINDS = {"u8": (np.uint8, 120, TensorProto.UINT8), "s8": (np.int8, -8, TensorProto.INT8)}


class Net:
    """Nodes of a graph, each value quantised as ONNX Runtime's tool does it."""

    def __init__(self, kind: str) -> None:
        self.dtype, zero, self.proto = KINDS[kind]
        self.nodes: list[Any] = []
        self.constants = [numpy_helper.from_array(np.array(zero, self.dtype), "zero")]

    def number(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, inputs: list[str], **attrs: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op}{name}", **attrs))
        return name

    def round_trip(self, x: str, scale: float) -> str:
        step = self.number(f"s{len(self.nodes)}", np.float32(scale))
        codes = self.node("QuantizeLinear", [x, step, "zero"])
        return self.node("DequantizeLinear", [codes, step, "zero"])

    def weights(self, *shape: int, axis: int) -> str:
        n = len(self.nodes)
        codes = self.number(f"c{n}", RNG.integers(-127, 128, shape, np.int8))
        steps = RNG.uniform(0.5, 1.5, shape[axis]).astype(np.float32) / 512
        zeros = self.number(f"z{n}", np.zeros(shape[axis], np.int8))
        return self.node("DequantizeLinear", [codes, self.number(f"w{n}", steps), zeros], axis=axis)

    def model(self, x: tuple[int, ...], y: str) -> bytes:
        """Its output is the codes of y."""
        scale = self.number("last", np.float32(0.05))
        self.nodes.append(helper.make_node("QuantizeLinear", [y, scale, "zero"], ["y"]))
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x)
        made = helper.make_tensor_value_info("y", self.proto, list("nchw"[: len(x)]))
        graph = helper.make_graph(self.nodes, "net", [given], [made], self.constants)
        opset = [helper.make_opsetid("", 19)]
        data: bytes = helper.make_model(
            graph, opset_imports=opset, ir_version=9
        ).SerializeToString()
        onnx.checker.check_model(data)
        return data


def perceptron(kind: str) -> tuple[bytes, tuple[int, ...]]:
    """Two products with a GELU between them, whose every step is quantised, and a residual."""
    net = Net(kind)
    x = net.round_trip("x", 0.02)
    h = net.node("MatMul", [x, net.weights(64, 96, axis=1)])
    h = net.round_trip(net.round_trip(h, 0.03), 0.03)
    e = net.node("Erf", [h])
    e = net.round_trip(e, 1 / 120)
    g = net.round_trip(net.node("Mul", [h, e]), 0.02)
    y = net.round_trip(net.node("MatMul", [g, net.weights(96, 64, axis=1)]), 0.04)
    return net.model((5, 64), net.node("Add", [y, x])), (5, 64)


def image(kind: str) -> tuple[bytes, tuple[int, ...]]:
    """A first convolution, a pool of codes, two branches that are added."""
    net = Net(kind)
    x = net.round_trip("x", 0.02)
    kernel = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    h = net.node("Conv", [x, net.weights(16, 3, 3, 3, axis=0)], **kernel)
    h = net.round_trip(net.node("Relu", [h]), 0.02)
    h = net.round_trip(net.node("MaxPool", [h], strides=[2, 2], **kernel), 0.02)
    a = net.round_trip(net.node("Conv", [h, net.weights(40, 16, 1, 1, axis=0)]), 0.03)
    b = net.node("Conv", [h, net.weights(40, 16, 3, 3, axis=0)], **kernel)
    return net.model((1, 3, 18, 18), net.node("Add", [net.round_trip(b, 0.05), a])), (1, 3, 18, 18)


def wide_image(kind: str) -> tuple[bytes, tuple[int, ...]]:
    """A convolution that takes fewer products on floats."""
    net = Net(kind)
    x = net.round_trip("x", 0.02)
    kernel = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    h = net.node("Conv", [x, net.weights(64, 64, 3, 3, axis=0)], **kernel)
    return net.model((1, 64, 20, 20), h), (1, 64, 20, 20)


def builds() -> list[str]:
    backend, target = find("cpu")
    return [v.name for v in runnable_variants(backend, target) if "bf16" not in v.products]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [perceptron, image, wide_image])
def test_codes_are_those_of_onnx_runtime_within_one(make: Any, kind: str) -> None:
    data, shape = make(kind)
    x = RNG.standard_normal(shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})[0].astype(int)
    assert want.std() > 5
    results = {name: cuvil.compile(data, variant=name, cache=False)(x) for name in builds()}
    for name, got in results.items():
        assert np.abs(got.astype(int) - want).max() <= 1, name
    first = next(iter(results.values()))
    assert all(np.abs(got.astype(int) - first).max() <= 1 for got in results.values())


@pytest.mark.parametrize(("variant", "kind"), [("avx2", "winograd"), ("avx2_vnni", "contract")])
def test_where_bytes_are_slow_fewer_products_are_of_floats(variant: str, kind: str) -> None:
    options = Options(variant=variant)
    built = compile_graph(import_model(wide_image("u8")[0]), options)
    ops = [op for kernel in built.plan.kernels.values() for op in kernel.body.block.ops]
    assert {op.kind.data for op in ops if isinstance(op, nest.TemplateOp)} == {kind}
