"""Models for the toy device, and what it is seen to have done."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Shapes = dict[str, list[int | str]]


def mlp(rng: np.random.Generator, batch: int | str) -> bytes:
    """softmax(relu(x w1 + b1) w2), x of [batch, 8]."""
    weights = {
        "w1": floats(rng, 8, 16),
        "b1": floats(rng, 16),
        "w2": floats(rng, 16, 5),
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
    inputs: Shapes,
    outputs: Shapes,
    weights: dict[str, Array] | None = None,
) -> bytes:
    def ports(items: Shapes) -> list[Any]:
        return [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in items.items()
        ]

    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    graph = helper.make_graph(nodes, "mlp", ports(inputs), ports(outputs), constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def tool(name: str, *inputs: str, out: str, **attrs: Any) -> Any:
    return helper.make_node(name, list(inputs), [out], name=out, **attrs)


def did(uploads: int, downloads: int, launches: int) -> dict[str, int]:
    return {"uploads": uploads, "downloads": downloads, "copies": 0, "launches": launches}


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)
