"""The text of the IR parses back to the same text, and a damaged one is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import make_op, rand

from cuvil.errors import ModelError
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.names import Block, Region
from cuvil.ir.pool import Pool
from cuvil.ir.text import parse_ir, print_ir
from cuvil.ir.types import TensorType
from cuvil.ops.lower_one import lower_op

B, S = symbol("B"), symbol("seq len")


def graph_text() -> str:
    x = TensorType.of((B, B * S + 1, 4), "f32")
    graph = new_graph("model", {"x": x, "input.1": TensorType.of((), "bool")}, Pool())
    b = Builder(graph.block, graph.pool, "/layer/Add")
    y = b.add(graph.inputs[0], b.const(np.float32([1, 2, 3, np.inf])))
    y = b.pad(y, b.scalar(0.5, y), low=(0, S, 0), high=(0, -1, 0))
    y = b.softmax(b.cast(y, to="f16"), axis=2)
    then, other = Block(), Block()
    for block in (then, other):
        inner = Builder(block, graph.pool)
        inner.yield_(inner.reduce(y, kind="max", axes=(1, 2)))
    kind = TensorType.of((B,), "f16")
    (z,) = b.emit_regions("if", [graph.inputs[1]], [kind], [Region(then), Region(other)])
    return print_ir(finish_graph(graph, {"z": z}).module)


def test_a_graph_comes_back() -> None:
    text = graph_text()
    assert print_ir(parse_ir(text)) == text
    assert 'B*"seq len" + 1' in text or "seq len" in text


@pytest.mark.parametrize(
    ("name", "arrays", "attrs"),
    [
        ("softmax", [rand(2, 3)], {"axis": 1}),
        ("gather", [rand(2, 3), np.int64([0])], {"axis": 0}),
        ("pad", [rand(3), np.float32(0)], {"low": (1,), "high": (1,), "mode": "reflect"}),
        ("arg_reduce", [rand(3)], {"kind": "max", "axis": 0}),
    ],
)
def test_a_kernel_comes_back(name: str, arrays: list, attrs: dict) -> None:
    kernel = lower_op(make_op(name, arrays, attrs, True)).kernel
    text = print_ir(kernel)
    assert print_ir(parse_ir(text).body.block.first_op) == text


def test_damage_is_refused() -> None:
    text = graph_text()
    for wrong, said in (
        (text.replace('"cuvil.softmax"', '"cuvil.softmix"'), "softmix"),
        (text.replace("axis = 2", "axis = 5"), "axis 5"),
        (text.replace("array<i64: 1, 2>", "array<i64: 1>"), "result type"),
        (text[: len(text) // 2], "model.mlir"),
    ):
        with pytest.raises(ModelError) as info:
            parse_ir(wrong, "model.mlir")
        assert said in str(info.value)
