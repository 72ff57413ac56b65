"""A random ONNX model that grows node by node: ONNX Runtime says what each node gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.program import Misfit

Array = np.ndarray[Any, Any]
OPSET, IR = 19, 9
LIMIT = 1e3
MOST = 4000  # elements
ELEMENTS = {np.dtype(k): v for k, v in (
    ("float32", TensorProto.FLOAT), ("float64", TensorProto.DOUBLE), ("int64", TensorProto.INT64),
    ("int32", TensorProto.INT32), ("int8", TensorProto.INT8), ("uint8", TensorProto.UINT8),
    ("bool", TensorProto.BOOL), ("float16", TensorProto.FLOAT16),
)}  # fmt: skip


class Model:
    """nodes so far, and the value of every tensor; exact: those that are computed bit by bit."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rng = np.random.default_rng(number)
        self.values: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.made: list[str] = []
        self.exact: set[str] = set()
        self.wanted: list[str] | None = None

    # -- choices -------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number_in(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def choice(self, items: Sequence[Any]) -> Any:
        if not len(items):
            raise Misfit
        return items[int(self.rng.integers(len(items)))]

    def pick(self, fits: Callable[[Array], bool], exact: bool = False) -> str:
        """A tensor so far, later ones more often."""
        known = [n for n in (*self.inputs, *self.made) if fits(self.values[n])]
        known = [n for n in known if n in self.exact] if exact else known
        if len(known) > 4 and self.chance(0.6):
            known = known[-4:]
        name: str = self.choice(known)
        return name

    def floats(self, least: int = 0, most: int = 6) -> str:
        return self.pick(lambda a: a.dtype == np.float32 and least <= a.ndim <= most)

    # -- tensors -------------------------------------------------------------------------------
    def input(self, array: Array) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values[name] = array
        self.exact.add(name)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        array = np.asarray(array, dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = self.values[name] = array
        self.exact.add(name)
        return name

    def numbers(self, *shape: int, dtype: Any = np.float32) -> Array:
        """Small numbers of both signs."""
        kind = np.dtype(dtype)
        if kind.kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        if kind.kind in "iu":
            return self.rng.integers(0 if kind.kind == "u" else -9, 10, shape).astype(kind)
        return np.asarray(self.rng.integers(-16, 17, shape) / 8).astype(kind)

    def axis(self, name: str) -> int:
        """An axis, now and then counted from the end."""
        rank = self.values[name].ndim
        if rank == 0:
            raise Misfit
        return self.number_in(-rank, rank - 1)

    def add(self, op: str, *inputs: str, exact: bool = False, count: int = 1, **attrs: Any) -> str:
        """A node; the name of one of its outputs. Misfit where ONNX Runtime refuses it."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(count)]
        node = helper.make_node(op, list(inputs), names, **attrs)
        try:
            arrays = run_model(self._model([node], inputs, names), self._feed(inputs))
        except Exception as error:
            raise Misfit(str(error)) from error
        if not all(map(usable, arrays)):
            raise Misfit("its values are of no use")
        self.nodes.append(node)
        self.values.update(zip(names, arrays, strict=True))
        self.made += names
        if exact and all(n in self.exact for n in inputs if n):
            self.exact.update(names)
        result: str = self.choice(names)
        return result

    def _feed(self, names: Sequence[str]) -> dict[str, Array]:
        return {n: self.values[n] for n in names if n and n not in self.constants}

    def _model(
        self, nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str]
    ) -> onnx.ModelProto:
        given = dict.fromkeys(n for n in inputs if n and n not in self.constants)
        used = {n for node in nodes for n in node.input}
        constants = [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in used]
        graph = helper.make_graph(
            list(nodes), f"random{self.number}", [_info(n, self.values[n]) for n in given],
            [helper.make_empty_tensor_value_info(n) for n in outputs], constants,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR)

    def finished(self, symbolic: bool) -> onnx.ModelProto:
        """The whole model, with what nobody reads as outputs. symbolic: its inputs' extents have
        names, alike where the numbers are."""
        if self.wanted is None:
            used = {n for node in self.nodes for n in node.input}
            self.wanted = [n for n in self.made if n not in used or self.chance(0.2)]
        model = self._model(self.nodes, list(self.inputs), self.wanted)
        if symbolic:
            for info in model.graph.input:
                for dim in info.type.tensor_type.shape.dim:
                    if dim.dim_value > 1:
                        dim.dim_param = f"n{dim.dim_value}"
        return model


def usable(array: Array) -> bool:
    """Whether a test can be made of it: of a known type, few elements, no large numbers."""
    if array.size > MOST or array.dtype not in ELEMENTS:
        return False
    return array.dtype.kind != "f" or array.size == 0 or bool(np.abs(array).max() < LIMIT)


def _info(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ELEMENTS[array.dtype], array.shape)


def run_model(model: onnx.ModelProto, feed: dict[str, Array]) -> list[Array]:
    """All outputs, by ONNX Runtime, nothing of the graph rewritten."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, feed)]
