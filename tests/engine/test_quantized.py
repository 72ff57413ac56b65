"""Models whose tensors stand as bytes: their products are of bytes, summed exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import cuvil
from cuvil.engine.front_door import build_for_host
from cuvil.frontends.onnx import import_model
from cuvil.ir import nest
from cuvil.ir.types import BufferType
from cuvil.ops import interpreter
from cuvil.options import Options

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(6)
CODES = {"u8": (TensorProto.UINT8, np.uint8), "s8": (TensorProto.INT8, np.int8)}


def codes(kind: str, *shape: int) -> Array:
    limits = np.iinfo(CODES[kind][1])
    return RNG.integers(limits.min, limits.max + 1, shape).astype(CODES[kind][1])


def model(nodes: Any, inputs: Any, constants: dict[str, Array]) -> bytes:
    """Nodes are (op, inputs, outputs, attributes); the last one's first output is the model's."""
    graph = helper.make_graph(
        [
            helper.make_node(op, ins.split(), outs.split(), **attrs)
            for op, ins, outs, attrs in nodes
        ],
        "net",
        [helper.make_tensor_value_info(n, kind, dims) for n, kind, dims in inputs],
        [helper.make_empty_tensor_value_info(nodes[-1][2].split()[0])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


def scales(kind: str, zero: int, weights: str) -> dict[str, Array]:
    return {
        "xs": np.float32(0.03), "xz": CODES[kind][1](zero), "ys": np.float32(0.5),
        "yz": CODES[kind][1](zero + 5), "ws": np.linspace(0.01, 0.02, 24, dtype="f4"),
        "wz": np.full(24, 128 if weights == "u8" else 0, CODES[weights][1]),
    }  # fmt: skip


def qdq_product(kind: str, zero: int, weights: str = "s8") -> bytes:
    """DQ(x) @ DQ(w) + b, rectified, quantised again."""
    held = {**scales(kind, zero, weights), "w": codes(weights, 32, 24), "b": np.ones(24, "f4")}
    nodes = [
        ("DequantizeLinear", "x xs xz", "xf", {}),
        ("DequantizeLinear", "w ws wz", "wf", {"axis": 1}),
        ("MatMul", "xf wf", "h", {}), ("Add", "h b", "i", {}), ("Relu", "i", "j", {}),
        ("QuantizeLinear", "j ys yz", "y", {}),
    ]  # fmt: skip
    return model(nodes, [("x", CODES[kind][0], ["n", 32])], held)


def qdq_image(kind: str, zero: int, weights: str = "s8") -> bytes:
    """A padded convolution between quantised images."""
    held = {**scales(kind, zero, weights), "w": codes(weights, 24, 16, 3, 3)}
    nodes = [
        ("DequantizeLinear", "x xs xz", "xf", {}),
        ("DequantizeLinear", "w ws wz", "wf", {"axis": 0}),
        ("Conv", "xf wf", "h", {"pads": [1] * 4}), ("QuantizeLinear", "h ys yz", "y", {}),
    ]  # fmt: skip
    return model(nodes, [("x", CODES[kind][0], [1, 16, "h", 9])], held)


def linear_image(kind: str, zero: int, weights: str = "s8") -> bytes:
    held = {**scales(kind, zero, weights), "w": codes(weights, 24, 16, 3, 3),
            "b": np.arange(24, dtype="i4")}  # fmt: skip
    nodes = [("QLinearConv", "x xs xz w ws wz ys yz b", "y", {"pads": [1] * 4})]
    return model(nodes, [("x", CODES[kind][0], [1, 16, "h", 9])], held)


def linear_product(kind: str, zero: int, weights: str = "s8") -> bytes:
    held = {**scales(kind, zero, weights), "w": codes(weights, 32, 24)}
    held |= {"ws": np.float32(0.02), "wz": held["wz"][0]}
    nodes = [("QLinearMatMul", "x xs xz w ws wz ys yz", "y", {})]
    return model(nodes, [("x", CODES[kind][0], ["n", 32])], held)


BUILDERS = (qdq_product, qdq_image, linear_image, linear_product)


def factors(data: bytes) -> list[str]:
    """The dtypes of what the templates multiply."""
    built = build_for_host(import_model(data), Options(), lambda stage: None)
    kernels = (op for kernel in built.plan.kernels.values() for op in kernel.body.block.ops)
    kinds = [op.buffers[0].type for op in kernels if isinstance(op, nest.TemplateOp)]
    return [kind.data for kind in kinds if isinstance(kind, BufferType)]


@pytest.mark.parametrize(("kind", "zero"), [("u8", 0), ("u8", 121), ("s8", 0), ("s8", -7)])
@pytest.mark.parametrize("build", BUILDERS)
def test_products_of_bytes_are_within_one_step(build: Any, kind: str, zero: int) -> None:
    data = build(kind, zero)
    assert factors(data) == ["u8"]
    x = codes(kind, 5, 32) if "product" in build.__name__ else codes(kind, 1, 16, 7, 9)
    (want,) = interpreter.run(import_model(data), {"x": x}).values()
    got = cuvil.compile(data, cache=False)(x)
    assert got.dtype == want.dtype
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    assert np.ptp(want.astype(int)) > 50


def test_unsigned_weights_around_128() -> None:
    data = qdq_product("u8", 3, "u8")
    assert factors(data) == ["u8"]
    x = codes("u8", 4, 32)
    (want,) = interpreter.run(import_model(data), {"x": x}).values()
    got = cuvil.compile(data, cache=False)(x)
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1


@pytest.mark.parametrize("features", ["", "-avx512vnni", "-avx512f", "-avx2"])
def test_integer_products_are_exact_on_every_cpu(features: str) -> None:
    """With the greatest factors, whose sums do not fit into 16 bits, among them."""
    w = codes("s8", 32, 24)
    w[:, 0] = -128
    nodes = [("MatMulInteger", "x w z", "y", {})]
    data = model(
        nodes, [("x", TensorProto.UINT8, ["n", 32]), ("z", TensorProto.UINT8, [])], {"w": w}
    )
    assert factors(data) == ["u8"]
    x = codes("u8", 9, 32)
    x[0] = 255
    got = cuvil.compile(data, features=features, cache=False)(x, np.uint8(7))
    np.testing.assert_array_equal(got, (x.astype("i4") - 7) @ w.astype("i4"))


def test_weights_of_bytes_become_floats_once_where_the_product_is_of_floats() -> None:
    held = {"w": codes("s8", 64, 24), "ws": np.float32(0.1)}
    nodes = [("DequantizeLinear", "w ws", "wf", {}), ("MatMul", "x wf", "y", {})]
    data = model(nodes, [("x", TensorProto.FLOAT, ["n", 64])], held)
    built = build_for_host(import_model(data), Options(), lambda stage: None)
    assert [name.partition("_")[2] for name in built.plan.kernels] == ["contract"]
    x = RNG.standard_normal((3, 64)).astype("f4")
    want = x @ (held["w"].astype("f4") * np.float32(0.1))
    np.testing.assert_allclose(cuvil.compile(data, cache=False)(x), want, rtol=1e-4, atol=1e-4)
