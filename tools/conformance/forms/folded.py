"""Every input a constant: what is left to run is what the compiler did not fold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from cuvil.onnx_backend import CuvilBackend, CuvilRep
from tools.conformance.forms import Form
from tools.conformance.suite import ApartError


class FoldedRep(CuvilRep):
    """A model whose inputs become initializers when they are given."""

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs of a model without inputs, which is compiled for these values."""
        given = self._feeds(inputs)
        if not given:
            raise ApartError("apart: no input to be a constant")
        return CuvilRep(with_constants(self.model, given), self._compile).run([])


def with_constants(model: onnx.ModelProto, given: Mapping[str, Any]) -> onnx.ModelProto:
    """The model with inputs as initializers, or made of such where they are sequences."""
    folded = onnx.ModelProto()
    folded.CopyFrom(model)
    graph = folded.graph
    described = {value.name: value for value in graph.input}
    kept = [value for value in graph.input if value.name not in given]
    del graph.input[:]
    graph.input.extend(kept)
    nodes = list(graph.node)
    del graph.node[:]
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            graph.initializer.append(numpy_helper.from_array(value, name))
        else:
            _make_structure(graph, described[name], value)
    graph.node.extend(nodes)
    return folded


def _make_structure(graph: onnx.GraphProto, of: onnx.ValueInfoProto, value: Any) -> None:
    """Nodes that make a sequence, or an optional that is absent."""
    kind = of.type.optional_type.elem_type if of.type.HasField("optional_type") else of.type
    if value is None:
        graph.node.append(onnx.helper.make_node("Optional", [], [of.name], type=kind))
    elif not value:
        element = kind.sequence_type.elem_type.tensor_type.elem_type
        graph.node.append(onnx.helper.make_node("SequenceEmpty", [], [of.name], dtype=element))
    else:
        parts = [f"{of.name}_{k}" for k in range(len(value))]
        graph.initializer.extend(map(numpy_helper.from_array, value, parts))
        graph.node.append(onnx.helper.make_node("SequenceConstruct", parts, [of.name]))


class FoldedBackend(CuvilBackend):
    """Compiles models for given values of their inputs."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> FoldedRep:
        return FoldedRep(model, cls.compile_graph)


FORM = Form("folded", "inputs constant", lambda: FoldedBackend, rank=2)
