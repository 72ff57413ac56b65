"""A custom operator between products that a device computes: the host runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from device_models import did, floats
from onnx import numpy_helper

import cuvil
import cuvil_backend_toy as toy
from cuvil.engine.custom_code import addresses
from cuvil.engine.engine import Engine
from cuvil.engine.front_door import write_custom
from cuvil.frontends.onnx import import_model
from cuvil.ops.interpreter import run as interpret
from cuvil.options import Options
from cuvil.pipeline import compile_graph
from cuvil_runtime import load_object

SOURCE = """
#include <stdint.h>
int32_t acme_twice(const float *x, const int64_t *x_dims, int64_t x_rank,
                   float *y, const int64_t *y_dims, int64_t y_rank) {
  for (int64_t i = 0; i < x_dims[0] * x_dims[1]; i++) y[i] = 2 * x[i];
  return 0;
}
"""
NET = """<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>
net (float[B, 8] x) => (float[B, 8] y)
{ a = MatMul(x, w)  b = com.acme.Twice(a)  c = MatMul(b, w)  y = com.acme.Twice(c) }"""


@pytest.fixture
def twice() -> Iterator[None]:
    """com.acme::Twice, for one test."""
    operator = cuvil.custom_op("com.acme::Twice", inputs=["x: f32"], outputs=["f32"])
    operator.shape(lambda x: x)
    operator.reference(lambda x: x + x)
    operator.native("acme_twice", source=SOURCE)
    yield
    operator.remove()


@pytest.mark.usefixtures("twice")
def test_operands_come_back_from_the_device(
    shim: toy.Toy, tmp_path: Path, rng: np.random.Generator
) -> None:
    made = onnx.parser.parse_model(NET)
    made.graph.initializer.append(numpy_helper.from_array(floats(rng, 8, 8), "w"))
    x = floats(rng, 3, 8)
    want = interpret(import_model(made), {"x": x})["y"]
    built = compile_graph(import_model(made), Options(target="toy,cpu"), weights_file="weights.bin")
    built.write_object(tmp_path / "model.o")
    built.write_weights(tmp_path / "weights.bin")
    write_custom(built.calls, tmp_path)
    code = load_object(
        (tmp_path / "model.o").read_bytes(),
        weights=tmp_path / "weights.bin",
        devices={"toy": shim.device},
        addresses=addresses(tmp_path / "custom.json"),
    )
    shim.took()
    (got,) = Engine(code).run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert shim.took() == did(uploads=2, downloads=2, launches=2)
