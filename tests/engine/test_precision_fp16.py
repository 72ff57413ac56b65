"""`precision="fp16"`: weights stored in float16, products and sums in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import cuvil
from cuvil.engine.front_door import build_for_host
from cuvil.frontends.onnx import import_model
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)
WEIGHTS = {
    "w": RNG.standard_normal((48, 97)) / 7, "v": RNG.standard_normal((97, 48)) / 10,
    "big": np.full((48, 64), 7e4), "taps": RNG.standard_normal((40, 48, 1, 1)) / 7,
}  # fmt: skip


def model(nodes: list[tuple[str, list[str], str]], dims: list[int | str]) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op, ins, [out]) for op, ins, out in nodes],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(w.astype("f4"), name) for name, w in WEIGHTS.items()
         if any(name in ins for _, ins, _ in nodes)],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


PERCEPTRON = model(
    [("MatMul", ["x", "w"], "h"), ("Relu", ["h"], "i"), ("MatMul", ["i", "v"], "y")], ["rows", 48]
)
IMAGE = model([("Conv", ["x", "taps"], "y")], [1, 48, "rows", 5])


@pytest.mark.parametrize("variant", ["", "avx2", "baseline"])
@pytest.mark.parametrize(
    ("data", "shape"), [(PERCEPTRON, (1, 48)), (PERCEPTRON, (19, 48)), (IMAGE, (1, 48, 7, 5))]
)
def test_only_the_weights_are_rounded(data: bytes, shape: tuple[int, ...], variant: str) -> None:
    x = RNG.standard_normal(shape).astype("f4")
    exact = cuvil.compile(data, cache=False)(x)
    rounded = cuvil.compile(data, precision="fp16", variant=variant, cache=False)(x)
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, rtol=1e-3, atol=2.5e-3)


def test_the_sums_are_those_of_float32_with_rounded_weights() -> None:
    x = RNG.standard_normal((5, 48)).astype("f4")
    w, v = (WEIGHTS[n].astype("f4").astype("f2").astype("f8") for n in "wv")
    expected = np.maximum(x.astype("f8") @ w, 0) @ v
    found = cuvil.compile(PERCEPTRON, precision="fp16", cache=False)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def weights_bytes(data: bytes, precision: str) -> int:
    return build_for_host(
        import_model(data), Options(precision=precision), lambda stage: None
    ).plan.weights_bytes


def test_weights_take_half_of_the_bytes() -> None:
    assert weights_bytes(PERCEPTRON, "fp16") == weights_bytes(PERCEPTRON, "fp32") // 2


def test_weights_that_float16_cannot_hold_stay_as_they_are() -> None:
    data = model([("MatMul", ["x", "big"], "y")], [3, 48])
    assert weights_bytes(data, "fp16") == weights_bytes(data, "fp32")
    x = np.ones((3, 48), "f4")
    np.testing.assert_allclose(cuvil.compile(data, precision="fp16", cache=False)(x), 48 * 7e4)


def test_the_plan_means_the_same_in_numpy() -> None:
    built = build_for_host(import_model(PERCEPTRON), Options(precision="fp16"), lambda stage: None)
    x = RNG.standard_normal((5, 48)).astype("f4")
    expected = run_plan(built.plan, {"x": x})["y"]
    found = cuvil.compile(PERCEPTRON, precision="fp16", cache=False)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
