"""Random weights for the onnx package's light models, whose weights are all one value.

A light model fills each weight with ConstantOfShape, so every output value is the same and a
wrong kernel goes unseen. Here each weight becomes an initializer of seeded random values whose
spread follows from where it is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

STEMS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def randomise(source: Path, target: Path) -> None:
    """Write the model at `source` with random weights to `target`; same source, same bytes."""
    model = onnx.load(source)
    rng = np.random.default_rng(0)
    consumers = _consumers(model)
    # Shortcuts add up from block to block, so networks that sum keep their gain at 1.
    gain = 1.0 if any(node.op_type == "Sum" for node in model.graph.node) else 2**0.5
    for name, shape in _weights(model).items():
        values = _draw(name, consumers, gain)(rng, shape)
        _set_weight(model, name, values.astype(np.float32))
    onnx.checker.check_model(model)
    onnx.save(model, target)


def _weights(model: ModelProto) -> dict[str, tuple[int, ...]]:
    """Shapes of all float weights: filled by a node, or small initializers."""
    known = {value.name: value for value in model.graph.initializer}
    shapes = {
        node.output[0]: tuple(int(size) for size in numpy_helper.to_array(known[node.input[0]]))
        for node in model.graph.node
        if node.op_type == "ConstantOfShape"
    }
    stored = {
        name: tuple(value.dims)
        for name, value in known.items()
        if value.data_type == onnx.TensorProto.FLOAT
    }
    return shapes | stored


def _set_weight(model: ModelProto, name: str, values: np.ndarray) -> None:
    """Replace the weight's filler or initializer; IR version 3 lists it as an input too."""
    graph = model.graph
    for node in [node for node in graph.node if name in node.output]:
        _drop(graph.initializer, node.input[0])
        _drop(graph.input, node.input[0])
        graph.node.remove(node)
    _drop(graph.initializer, name)
    _drop(graph.input, name)
    graph.initializer.append(numpy_helper.from_array(values, name))
    graph.input.append(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(values.shape))
    )


def _drop(entries: Any, name: str) -> None:
    """Remove what is called `name` from a repeated protobuf field."""
    for entry in [entry for entry in entries if entry.name == name]:
        entries.remove(entry)


def _consumers(model: ModelProto) -> dict[str, list[tuple[NodeProto, int]]]:
    uses: dict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            uses[name].append((node, position))
    return uses


def _draw(name: str, consumers: dict[str, list[tuple[NodeProto, int]]], gain: float) -> Draw:
    """The distribution that the weight's place in the network asks for."""
    uses = consumers[name]
    if not uses:
        return _normal(0.05)
    node, position = uses[0]
    match node.op_type, position:
        case "Unsqueeze", _:
            return _draw(node.output[0], consumers, gain)
        case "Conv", 1:
            return lambda rng, shape: rng.normal(0, gain * np.prod(shape[1:]) ** -0.5, shape)
        case "Gemm", 1:
            axis = 1 if _attribute(node, "transB", 0) else 0
            return lambda rng, shape: rng.normal(0, shape[axis] ** -0.5, shape)
        case ("BatchNormalization", 1 | 4) | ("Mul", _):
            return lambda rng, shape: rng.uniform(0.5, 1.5, shape)
        case "BatchNormalization", _:
            return _normal(0.1)
    return _normal(0.05)


def _normal(deviation: float) -> Draw:
    return lambda rng, shape: rng.normal(0, deviation, shape)


def _attribute(node: NodeProto, name: str, default: int) -> int:
    found = [entry for entry in node.attribute if entry.name == name]
    return helper.get_attribute_value(found[0]) if found else default
