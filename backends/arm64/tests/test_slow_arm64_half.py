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
from tools.foreign_cases import disassembler, undeclared

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


def model() -> onnx.ModelProto:
    proto = onnx.parser.parse_model(MODEL)
    held = {"w": W, "taps": TAPS}
    proto.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in held.items())
    return proto


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return compile_to_folder(model(), tmp_path_factory.mktemp("half"), Options(target=TRIPLE))


@pytest.mark.parametrize(("cpu", "build"), [("cortex-a53", "neon"), ("max", "fp16fml")])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_sums_are_rounded_once(cpu: str, build: str, rows: int, artefact: Artefact) -> None:
    machine = Machine(TRIPLE, cpu)
    if lacking := machine.lacking():
        pytest.skip(lacking)
    x, image = (RNG.standard_normal(s).astype(np.float16) for s in ((rows, 64), (1, 16, 9, 11)))
    program = Caller(Path(include_dir()), machine)
    found = program.call(artefact, {"x": x, "image": image})
    program.close()
    assert program.variant == build
    wanted = np.maximum(x.astype(np.float64) @ W.astype(np.float64), 0)
    np.testing.assert_allclose(found["y"], wanted, rtol=2**-10, atol=1e-4)
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded[0], (3, 3), axis=(1, 2))
    wanted = np.einsum("chwyx,ocyx->ohw", windows, TAPS.astype(np.float64))[None]
    np.testing.assert_allclose(found["z"], wanted, rtol=2**-10, atol=1e-3)


def test_weights_take_two_bytes_each(artefact: Artefact) -> None:
    names = [kernel["name"] for kernel in artefact.manifest["kernels"]]
    assert any(name.endswith("contract") for name in names)
    assert [v["name"] for v in artefact.manifest["variants"]] == ["fp16fml", "neon"]
    assert artefact.manifest["weights_bytes"] == 2 * (64 * 64 + 9 * 16 * 32)  # whole panels


@pytest.mark.parametrize("cpu", ["", "cortex-a76"])
def test_builds_are_those_that_a_cpu_runs(cpu: str, tmp_path: Path) -> None:
    options = Options(target=TRIPLE, cpu=cpu)
    made = compile_to_folder(model(), tmp_path, options, emit=("o",))
    names = [v["name"] for v in made.manifest["variants"]]
    assert names == (["neon"] if cpu else ["fp16fml", "neon"])


def test_the_build_multiplies_halves(tmp_path: Path) -> None:
    if disassembler() is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    options = Options(target=TRIPLE, variant="fp16fml")
    made = compile_to_folder(model(), tmp_path, options, emit=("o",))
    assert undeclared(made.files["o"], "+fp16fml") == []
    assert len(undeclared(made.files["o"], "+fullfp16")) > 99
