"""`precision="bf16"`: products in bfloat16, sums and the rest in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import cuvil
from cuvil.engine.front_door import build_for_host
from cuvil.frontends.onnx import import_model
from cuvil.ir import nest
from cuvil.ir.types import BufferType
from cuvil.options import Options

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)


def perceptron(width: int) -> bytes:
    """relu(x @ w + b) @ v, with a residual; x has any number of rows."""
    weights = {
        "w": RNG.standard_normal((width, 96)) / width**0.5, "b": RNG.standard_normal(96),
        "v": RNG.standard_normal((96, width)) / 10,
    }  # fmt: skip
    nodes = [("MatMul", "xw", "h"), ("Add", "hb", "i"), ("Relu", "i", "j"), ("MatMul", "jv", "k"),
             ("Add", "kx", "y")]  # fmt: skip
    return model(nodes, ["rows", width], weights)


def image() -> bytes:
    """Two padded convolutions, the second reads what the first wrote."""
    weights = {"w": RNG.standard_normal((32, 16, 3, 3)) / 12,
               "v": RNG.standard_normal((24, 32, 3, 3)) / 17}  # fmt: skip
    nodes = [("Conv", "xw", "h"), ("Relu", "h", "i"), ("Conv", "iv", "y")]
    return model(nodes, [1, 16, "rows", 12], weights, pads=[1] * 4)


def model(nodes: Any, dims: Any, weights: Any, **conv: Any) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op, list(ins), [out], **(conv if op == "Conv" else {}))
         for op, ins, out in nodes],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(w.astype("f4"), name) for name, w in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


CASES = {"perceptron": (perceptron(48), (7, 48)), "image": (image(), (1, 16, 9, 12))}


PLAIN = ("winograd",)  # kernels to do without, so that convolutions are sums of products


def products(data: bytes, precision: str, without: tuple[str, ...] = PLAIN) -> list[str]:
    """The dtypes of what the templates multiply."""
    options = Options(precision=precision, disable_kernels=without)
    built = build_for_host(import_model(data), options, lambda stage: None)
    kernels = (op for kernel in built.plan.kernels.values() for op in kernel.body.block.ops)
    kinds = [op.buffers[0].type for op in kernels if isinstance(op, nest.TemplateOp)]
    return [kind.data for kind in kinds if isinstance(kind, BufferType)]


@pytest.mark.parametrize("name", CASES)
def test_products_are_rounded_and_sums_are_not(name: str) -> None:
    data, shape = CASES[name]
    assert set(products(data, "fp32")) == {"f32"}
    assert products(data, "bf16") == ["bf16", "bf16"]
    x = RNG.standard_normal(shape).astype("f4")
    exact, rounded = (
        cuvil.compile(data, precision=p, winograd=False, cache=False)(x) for p in ("fp32", "bf16")
    )
    error = np.abs(exact - rounded).max() / np.abs(exact).max()
    assert 1e-5 < error < 2e-2


def test_what_a_product_and_a_sum_read_is_stored_once_in_16_bits() -> None:
    weights = {name: RNG.standard_normal((48, 48)) / 7 for name in "wv"}
    nodes = [("MatMul", "xw", "h"), ("Relu", "h", "i"), ("MatMul", "iv", "k"), ("Add", "ki", "y")]
    data = model(nodes, [7, 48], weights)
    built = build_for_host(import_model(data), Options(precision="bf16"), lambda stage: None)
    assert sum("cast" in name for name in built.plan.kernels) == 1  # of x
    assert len(built.plan.kernels) == 3
    x = RNG.standard_normal((7, 48)).astype("f4")
    exact, rounded = (cuvil.compile(data, precision=p, cache=False)(x) for p in ("fp32", "bf16"))
    assert np.abs(exact - rounded).max() < 2e-2 * np.abs(exact).max()


def test_fewer_products_of_floats_are_faster_than_rounded_ones() -> None:
    assert products(image(), "bf16", without=()) == ["f32", "f32"]


def test_odd_rows_stay_in_single_precision() -> None:
    assert set(products(perceptron(49), "bf16")) == {"f32", "bf16"}


@pytest.mark.parametrize("features", ["-avx512f", "-avx2"])
def test_cpus_without_the_instruction_give_the_same_within_rounding(features: str) -> None:
    data, shape = CASES["perceptron"]
    x = RNG.standard_normal(shape).astype("f4")
    best = cuvil.compile(data, precision="bf16", cache=False)(x)
    lesser = cuvil.compile(data, precision="bf16", features=features, cache=False)(x)
    np.testing.assert_allclose(lesser, best, rtol=1e-2, atol=1e-2)


def test_an_artefact_names_the_build_for_bfloat16(tmp_path: Any) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(CASES["perceptron"][0])
    compiler = cuvil.Compiler.load(path).optimize(target="x86_64", precision="bf16")
    variants = [v["name"] for v in compiler.compile(tmp_path / "out").manifest["variants"]]
    assert variants == ["avx512_bf16", "avx512", "avx2", "baseline"]


@pytest.mark.parametrize("variant", ["avx2", "baseline"])
def test_a_variant_by_name(variant: str) -> None:
    data, shape = CASES["image"]
    built = build_for_host(import_model(data), Options(variant=variant), lambda stage: None)
    assert [v.name for v in built.variants] == [variant]
    x = RNG.standard_normal(shape).astype("f4")
    best, lesser = (cuvil.compile(data, variant=v, cache=False)(x) for v in ("", variant))
    np.testing.assert_allclose(lesser, best, rtol=1e-4, atol=1e-5)


def test_a_variant_that_there_is_not() -> None:
    with pytest.raises(cuvil.OptionError, match=r"no variant 'avx3'; there are .*avx2, baseline"):
        cuvil.compile(CASES["image"][0], variant="avx3")
