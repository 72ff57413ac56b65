"""Small ONNX models for tests: from text, or of one node; and their run in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.onnx_backend import Compiled, CuvilBackend
from cuvil.ops import interpreter

OPSET = 17


class InterpreterBackend(CuvilBackend):
    """Runs models in the numpy interpreter: the importer's meaning, without compiled code."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        return lambda feeds: interpreter.run(graph, feeds)


def model(graph: str, opset: int = OPSET, functions: str = "", extra: str = "") -> onnx.ModelProto:
    """A model from the text of a graph, as in `m (float[N] x) => (float[N] y) { y = Abs(x) }`."""
    header = f'<ir_version: 8, opset_import: ["" : {opset}{extra}]>'
    return onnx.parser.parse_model(header + graph + functions)


def node_model(
    op: str, inputs: list[np.ndarray | None], outputs: int = 1, opset: int = OPSET, **attrs: Any
) -> onnx.ModelProto:
    """A model of one node whose inputs have the arrays' types; None is an absent input."""
    names = [f"x{k}" if v is not None else "" for k, v in enumerate(inputs)]
    node = onnx.helper.make_node(op, names, [f"y{k}" for k in range(outputs)], **attrs)
    infos = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape
        )
        for name, v in zip(names, inputs, strict=True)
        if v is not None
    ]
    results = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = onnx.helper.make_graph([node], op.lower(), infos, results)
    return onnx.helper.make_model(
        graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", opset)]
    )


def run(source: onnx.ModelProto, *inputs: np.ndarray, **fixed: np.ndarray) -> list[np.ndarray]:
    """Outputs in order for inputs in order; `fixed` inputs become constants at import."""
    graph = import_model(source, values=fixed)
    graph.module.verify()
    feeds = dict(zip(graph.input_names, inputs, strict=True))
    return list(interpreter.run(graph, feeds).values())


def run_node(
    op: str, inputs: list[Any], outputs: int = 1, opset: int = OPSET, fix: tuple[int, ...] = (),
    **attrs: Any,
) -> Any:  # fmt: skip
    """One node on arrays; inputs numbered in `fix` are constants. One output comes bare."""
    arrays = [None if v is None else np.asarray(v) for v in inputs]
    source = node_model(op, arrays, outputs, opset, **attrs)
    fixed = {f"x{k}": arrays[k] for k in fix}
    given = [v for k, v in enumerate(arrays) if v is not None and k not in fix]
    results = run(source, *given, **fixed)
    return results[0] if outputs == 1 else results


def f32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def i64(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def ops(graph: Graph) -> list[str]:
    """Names of the graph's operations in order, constants and the return left out."""
    names = [op.name.removeprefix("cuvil.") for op in graph.block.ops]
    return [name for name in names if name not in ("constant", "return")]
