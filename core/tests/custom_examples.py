"""A small custom operator, and graphs and plans that use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.ops.custom import CustomOp, custom_op
from cuvil.plan.plan import Plan, make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases

HEADER = '<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>'
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
Y = np.linspace(1, 2, 6, dtype=np.float32).reshape(2, 3)


def blend(**changes: Any) -> CustomOp:
    """x * gain + y: two inputs of one type, one attribute; with native code for f32."""
    words: dict[str, Any] = {
        "inputs": ["x: T", "y: T"], "outputs": ["z: T"], "attributes": {"gain": 2.0},
    }  # fmt: skip
    operator = custom_op("com.acme::Blend", **(words | changes))

    @operator.shape
    def extents(x: Any, y: Any, **attributes: Any) -> Any:
        return x

    @operator.reference
    def meaning(x: Any, y: Any, **attributes: Any) -> Any:
        return (x * attributes.get("gain", 2.0) + y).astype(x.dtype)

    return operator.native("acme_blend_{T}")


def model(graph: str) -> onnx.ModelProto:
    """From the text of a graph."""
    return onnx.parser.parse_model(HEADER + graph)


def imported(nodes: str, inputs: str = "float[N, 3] x, float[N, 3] y", out: str = "z") -> Graph:
    """The graph of these nodes."""
    return import_model(model(f"g ({inputs}) => ({out}) {{ {nodes} }}"))


def planned(graph: Graph) -> Plan:
    """The plan of a graph, rewritten and checked."""
    run_phases(graph)
    plan = make_plan(graph)
    verify_plan(plan)
    return plan
