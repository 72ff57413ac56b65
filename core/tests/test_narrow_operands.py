"""Narrow types are moved and converted: what calculates refuses them, by name."""

from __future__ import annotations

import pytest

import cuvil.ops  # noqa: F401 - registers the primitives
from cuvil.ir.build import Builder
from cuvil.ir.graph import new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.types import TensorType

WINDOW = {"kernel": (1,), "strides": (1,), "dilations": (1,), "pads": (0, 0)}
CONV = {"strides": (1,), "dilations": (1,), "pads": (0, 0)}
CALLS = {
    "reduce": ([(2, 3)], {"kind": "sum", "axes": (0,)}),
    "arg_reduce": ([(2, 3)], {"kind": "max", "axis": 0}),
    "cumulative": ([(2, 3)], {"axis": 0}),
    "softmax": ([(2, 3)], {"axis": 1}),
    "log_softmax": ([(2, 3)], {"axis": 1}),
    "layer_norm": ([(2, 3)], {"axis": 1}),
    "rms_norm": ([(2, 3)], {"axis": 1}),
    "contract": ([(2, 3), (3, 2)], {"spec": "ab,bc->ac"}),
    "conv": ([(1, 2, 3), (2, 2, 1)], CONV),
    "conv_transpose": ([(1, 2, 3), (2, 2, 1)], CONV),
    "pool": ([(1, 2, 3)], {"kind": "max", "out": (3,), **WINDOW}),
    "pool_argmax": ([(1, 2, 3)], {"out": (3,), **WINDOW}),
    "resize": ([(2, 3)], {"mode": "linear", "axes": (0,), "dims": (4, 3)}),
    "attention": ([(2, 3)] * 3, {"scale": 1.0}),
    "determinant": ([(2, 2)], {}),
    "roi_align": ([(1, 1, 2, 2), (1, 4), (1,)], {"height": 1, "width": 1}),
}


def builder(*types: TensorType) -> tuple[Builder, list]:
    graph = new_graph("g", {f"x{i}": t for i, t in enumerate(types)}, Pool())
    return Builder(graph.block, graph.pool), list(graph.inputs)


def test_the_list_is_whole() -> None:
    assert set(CALLS) == {name for name, record in PRIMITIVES.items() if record.computes}


@pytest.mark.parametrize("kind", ["f8e4m3fn", "f4e2m1", "i4"])
@pytest.mark.parametrize("name", CALLS)
def test_calculation(name: str, kind: str) -> None:
    shapes, attrs = CALLS[name]
    b, operands = builder(*(TensorType.of(s, kind) for s in shapes))
    with pytest.raises(ValueError, match=f"{name} does not compute in {kind}: cast it first"):
        b.emit(name, operands, **attrs)


@pytest.mark.parametrize("name", ["scatter_elements", "scatter_nd"])
def test_scattering_moves_but_does_not_combine(name: str) -> None:
    index = TensorType.of((2, 2), "i64")
    data = TensorType.of((2, 2), "i4")
    updates = data if name == "scatter_elements" else TensorType.of((2,), "i4")
    b, operands = builder(data, index, updates)
    assert b.emit(name, operands).type == data
    with pytest.raises(ValueError, match="i4 cannot be combined by 'add'"):
        b.emit(name, operands, reduction="add")
