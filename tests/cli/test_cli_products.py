"""`cuvil inspect --products`: which products of a quantised model run on bytes, and why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests import small_models
from tests.cli.cli_runner import Command

SHAPES = {"enough": (32, 12), "few": (12, 16), "numbers": (16, 18), "uneven": (18, 3)}


def quantised() -> onnx.ModelProto:
    """Four matrix products; all inputs become codes first, and the weights of all but one are."""
    rng = np.random.default_rng(0)
    nodes, constants, x = [], [], "x"
    for name, shape in SHAPES.items():
        codes = rng.integers(-127, 128, shape, np.int8)
        constants += [
            numpy_helper.from_array(codes.astype(np.float32), f"{name}_w")
            if name == "numbers"
            else numpy_helper.from_array(codes, f"{name}_c")
        ]
        nodes += [
            helper.make_node("QuantizeLinear", [x, "s", "z"], [f"{name}_q"]),
            helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_x"]),
        ]
        if name != "numbers":
            nodes.append(helper.make_node("DequantizeLinear", [f"{name}_c", "s"], [f"{name}_w"]))
        x = f"{name}_y"
        nodes.append(helper.make_node("MatMul", [f"{name}_x", f"{name}_w"], [x], name=name))
    constants += [
        numpy_helper.from_array(np.float32(0.05), "s"),
        numpy_helper.from_array(np.uint8(7), "z"),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "m", [info("x", TensorProto.FLOAT, ["N", 32])],
        [info(x, TensorProto.FLOAT, ["N", 3])], constants,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return small_models.saved(quantised(), tmp_path / "m.onnx")


def test_it_says_what_runs_on_bytes_and_why_the_rest_does_not(cuvil: Command, model: Path) -> None:
    rows = cuvil("inspect", model, "--products", "--json").json["products"]
    assert [row["node"] for row in rows] == list(SHAPES)
    assert [row["of_bytes"] for row in rows] == [True, False, False, False]
    assert [row["factors"] for row in rows] == ["u8 x i8", *["f32 x f32"] * 3]
    said = {row["node"]: row["reason"] for row in rows}
    assert said["enough"] == ""
    assert "12 terms lie together" in said["few"] and "18 terms lie" in said["uneven"]
    assert said["numbers"] == "its weights are numbers, not bytes"
    text = cuvil("inspect", model, "--products").out
    assert "1 of 4 products multiply bytes" in text and "12 terms" in text


def test_what_is_compiled_has_no_more_to_tell(cuvil: Command, model: Path, tmp_path: Path) -> None:
    cuvil("compile", model, "-o", tmp_path / "libm.so", "-O", "1")
    said = cuvil.fails("inspect", tmp_path / "libm.so", "--products")
    assert "--products cannot change it" in said
