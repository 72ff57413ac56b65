"""Evaluation of a float32 model in float64, as the truth that engines' errors are measured by.

The model is rewritten (weights, constants and casts become double) and run by onnx's reference
evaluator. What that one computes in float32 whatever its input, or too slowly for whole
networks, is defined here in numpy. The file's weights are taken as exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from tools.models.float64_ops import OPERATORS

SINGLE, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
STAYS_SINGLE = {"Resize": (1, 2)}
"""Operands whose type the standard fixes to float32, by operator."""


class Exact:
    """A model in float64; making one takes longer than a run of a small model."""

    def __init__(self, path: Path) -> None:
        model = onnx.load(path)
        _widen_graph(model.graph, _single_names(model.graph))
        for function in model.functions:
            for node in function.node:
                _widen_node(node, frozenset())
        self._session = ReferenceEvaluator(model, new_ops=list(OPERATORS))

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name in float64 (integers and booleans as they are)."""
        values = self._session.run(None, {name: _wide(array) for name, array in inputs.items()})
        return dict(zip(self._session.output_names, values, strict=True))


def evaluate(path: Path, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`Exact(path).outputs(inputs)`."""
    return Exact(path).outputs(inputs)


def _widen_graph(graph: GraphProto, keep: frozenset[str]) -> None:
    """float32 becomes float64 in place, but for the values named in `keep`."""
    for weight in graph.initializer:
        if weight.data_type == SINGLE and weight.name not in keep:
            _widen_tensor(weight)
    for value in (*graph.input, *graph.output, *graph.value_info):
        tensor = value.type.tensor_type
        if tensor.elem_type == SINGLE and value.name not in keep:
            tensor.elem_type = DOUBLE
    for node in graph.node:
        if not keep.intersection(node.output):
            _widen_node(node, keep)


def _widen_node(node: NodeProto, keep: frozenset[str]) -> None:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR and attribute.t.data_type == SINGLE:
            _widen_tensor(attribute.t)
        elif attribute.type == AttributeProto.GRAPH:
            _widen_graph(attribute.g, keep | _single_names(attribute.g))
        elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == SINGLE:
            attribute.i = DOUBLE


def _widen_tensor(tensor: TensorProto) -> None:
    values = numpy_helper.to_array(tensor).astype(np.float64)
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _single_names(graph: GraphProto) -> frozenset[str]:
    return frozenset(_operands_that_stay(graph))


def _operands_that_stay(graph: GraphProto) -> Iterator[str]:
    for node in graph.node:
        for position in STAYS_SINGLE.get(node.op_type, ()):
            if position < len(node.input) and node.input[position]:
                yield node.input[position]


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array
