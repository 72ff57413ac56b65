"""Data beside the model, named from every place that holds a tensor: row B39."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import cuvil
from cuvil.engine.front_door import compile_engine
from cuvil.errors import ModelError
from cuvil.options import Options

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
X, Y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy")


def outside(location: str, **more: object) -> TensorProto:
    """4 floats of a file."""
    made = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    made.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        made.external_data.add(key=key, value=str(value))
    return made


def model(
    nodes: Sequence[onnx.NodeProto],
    tensors: Sequence[TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [X], [Y], tensors)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8, functions=functions)


def add(tensor: str = "w") -> onnx.NodeProto:
    return helper.make_node("Add", ["x", tensor], ["y"])


def initializer(w: TensorProto) -> onnx.ModelProto:
    return model([add()], [w])


def attribute(w: TensorProto) -> onnx.ModelProto:
    return model([helper.make_node("Constant", [], ["w"], value=w), add()])


def branch(w: TensorProto) -> onnx.ModelProto:
    yes, no = (
        helper.make_graph([add()], name, [], [helper.make_empty_tensor_value_info("y")], [w])
        for name in ("yes", "no")
    )
    size = helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)
    truth = helper.make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL)
    choice = helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)
    return model([size, truth, choice])


def function(w: TensorProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Constant", [], ["w"], value=w), add()]
    made = helper.make_function("local", "F", ["x"], ["y"], nodes, OPSETS)
    return model([helper.make_node("F", ["x"], ["y"], domain="local")], [], [made])


PLACES = (initializer, attribute, branch, function)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with 4 ones, and a secret beside it that many ways lead to."""
    (tmp_path / "secret").write_bytes(np.full(4, 7, np.float32).tobytes())
    inner = tmp_path / "model"
    (inner / "a").mkdir(parents=True)
    (inner / "w").write_bytes(np.ones(4, np.float32).tobytes())
    (inner / "link").symlink_to("../secret")
    (inner / "up").symlink_to("..")
    os.link(tmp_path / "secret", inner / "hard")
    return inner


WAYS = [
    {"location": "../secret"}, {"location": "a/../../secret"}, {"location": "link"},
    {"location": "up/secret"}, {"location": "hard"}, {"location": "./../secret"},
    {"location": "a//../..//secret"}, {"location": "none"}, {"location": "a"},
    {"location": "w", "offset": 1 << 40}, {"location": "w", "offset": -4},
    {"location": "w", "length": 1 << 62}, {"location": "w", "length": 8},
    {"location": "w", "offset": (1 << 64) - 4}, {"location": "w", "offset": "0x0"},
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
def test_b39_every_way_out_of_the_folder(
    folder: Path, place: Callable[[TensorProto], onnx.ModelProto]
) -> None:
    path = folder / "m.onnx"
    for way in [*WAYS, {"location": str(folder.parent / "secret")}]:
        path.write_bytes(place(outside(**way)).SerializeToString())  # type: ignore[arg-type]
        with pytest.raises(ModelError, match=r"m\.onnx") as caught:
            compile_engine(path, Options(), threads=1)
        assert "\n" not in str(caught.value), way
        with pytest.raises(ModelError):  # the cache asks what the files are before
            cuvil.compile(path)
    path.write_bytes(place(outside("w")).SerializeToString())
    engine = compile_engine(path, Options(), threads=1)
    assert engine(np.ones(4, np.float32)).tolist() == [2, 2, 2, 2]
