"""Models of half floats: their products are those of float32, rounded once, on every cpu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.conformance.c_program import Caller
from tools.foreign import Machine

TRIPLE = "aarch64-linux-gnu"
RNG = np.random.default_rng(8)
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
half (float16[N, 64] x, float16[1, 16, 9, 11] image)
    => (float16[N, 40] y, float16[1, 8, 9, 11] z) {
    h = MatMul(x, w)
    y = Relu(h)
    z = Conv<pads = [1, 1, 1, 1]>(image, taps)
}"""
W, TAPS = (RNG.standard_normal(s).astype(np.float16) for s in ((64, 40), (8, 16, 3, 3)))


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    model = onnx.parser.parse_model(MODEL)
    held = {"w": W, "taps": TAPS}
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in held.items())
    return compile_to_folder(model, tmp_path_factory.mktemp("half"), Options(target=TRIPLE))


@pytest.mark.parametrize("cpu", ["cortex-a53", "max"])
def test_sums_are_rounded_once(cpu: str, artefact: Artefact) -> None:
    machine = Machine(TRIPLE, cpu)
    if lacking := machine.lacking():
        pytest.skip(lacking)
    x, image = (RNG.standard_normal(s).astype(np.float16) for s in ((7, 64), (1, 16, 9, 11)))
    program = Caller(Path(include_dir()), machine)
    found = program.call(artefact, {"x": x, "image": image})
    program.close()
    wanted = np.maximum(x.astype(np.float64) @ W.astype(np.float64), 0)
    np.testing.assert_allclose(found["y"], wanted, rtol=2**-10, atol=1e-4)
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded[0], (3, 3), axis=(1, 2))
    wanted = np.einsum("chwyx,ocyx->ohw", windows, TAPS.astype(np.float64))[None]
    np.testing.assert_allclose(found["z"], wanted, rtol=2**-10, atol=1e-3)


def test_kernels_are_those_of_float32(artefact: Artefact) -> None:
    names = [kernel["name"] for kernel in artefact.manifest["kernels"]]
    assert any(name.endswith("contract") for name in names)
    assert [v["name"] for v in artefact.manifest["variants"]] == ["neon"]
