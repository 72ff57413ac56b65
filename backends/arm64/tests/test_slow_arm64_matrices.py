"""Products by instructions that multiply small matrices: rows in pairs, and what is left over."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
RNG = np.random.default_rng(3)
# Rows counted at a run, known ones with a sum in blocks, an odd length of the sum, two row dims;
# signed rows, which are counted from the lowest code.
CODES = """<ir_version: 8, opset_import: ["" : 18]>
codes (uint8[N, 64] x, uint8[37, 4224] y, uint8[5, 3, 44] z, uint8[1, 32, 9, 11] image,
       int8[N, 64] s)
    => (int32[N, 40] a, int32[37, 8] b, int32[5, 3, 24] c, int32[1, 24, 7, 9] d, int32[N, 40] e) {
    a = MatMulInteger(x, wa)
    b = MatMulInteger(y, wb)
    c = MatMulInteger(z, wc)
    d = ConvInteger(image, wd)
    e = MatMulInteger(s, wa)
}"""
FLOATS = """<ir_version: 8, opset_import: ["" : 18]>
floats (float[N, 64] x, float[37, 2112] y, float[5, 3, 44] z)
    => (float[N, 40] a, float[37, 8] b, float[5, 3, 24] c) {
    a = MatMul(x, wa)
    b = MatMul(y, wb)
    c = MatMul(z, wc)
}"""
WEIGHTS = {"wa": (64, 40), "wb": (4224, 8), "wc": (44, 24), "wd": (24, 32, 3, 3)}


@dataclass(frozen=True)
class Products:
    """A compiled model of products, and the arrays that it holds."""

    artefact: Artefact
    weights: dict[str, np.ndarray[Any, Any]]

    def run(self, variant: str, inputs: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        program = Caller(Path(include_dir()), Machine(TRIPLE, "max"), {"CUVIL_VARIANT": variant})
        found = program.call(self.artefact, inputs)
        program.close()
        assert program.variant == variant
        return found


def compiled(text: str, weights: dict[str, Any], folder: Path, **options: Any) -> Products:
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in weights.items())
    name = f"{model.graph.name}_matrices"
    made = compile_to_folder(model, folder, Options(target=TRIPLE, name=name, **options))
    return Products(made, weights)


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Products:
    if lacking := Machine(TRIPLE, "max").lacking():
        pytest.skip(lacking)
    weights = {n: RNG.integers(-128, 128, s).astype(np.int8) for n, s in WEIGHTS.items()}
    return compiled(CODES, weights, tmp_path_factory.mktemp("codes"))


@pytest.fixture(scope="module")
def floats(tmp_path_factory: pytest.TempPathFactory) -> Products:
    if lacking := Machine(TRIPLE, "max").lacking():
        pytest.skip(lacking)
    shapes = {**WEIGHTS, "wb": (2112, 8)}
    weights = {n: RNG.standard_normal(shapes[n], np.float32) for n in ("wa", "wb", "wc")}
    return compiled(FLOATS, weights, tmp_path_factory.mktemp("floats"), precision="bf16")


@pytest.mark.parametrize("rows", [1, 2, 19, 40])
def test_bytes_are_exact(rows: int, codes: Products) -> None:
    shapes = {"x": (rows, 64), "y": (37, 4224), "z": (5, 3, 44), "image": (1, 32, 9, 11)}
    inputs = {n: RNG.integers(0, 256, s).astype(np.uint8) for n, s in shapes.items()}
    inputs["s"] = RNG.integers(-128, 128, (rows, 64)).astype(np.int8)
    found, other = codes.run("i8mm_bf16", inputs), codes.run("neon", inputs)
    for name, x, w in (("a", "x", "wa"), ("b", "y", "wb"), ("c", "z", "wc"), ("e", "s", "wa")):
        wanted = inputs[x].astype(np.int32) @ codes.weights[w].astype(np.int32)
        np.testing.assert_array_equal(found[name], wanted)
    for name, value in other.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("rows", [1, 19])
def test_sums_of_bfloat16_are_those_of_its_values(rows: int, floats: Products) -> None:
    shapes = {"x": (rows, 64), "y": (37, 2112), "z": (5, 3, 44)}
    inputs = {n: RNG.standard_normal(s, np.float32) for n, s in shapes.items()}
    found = floats.run("i8mm_bf16", inputs)
    for name, x, w in (("a", "x", "wa"), ("b", "y", "wb"), ("c", "z", "wc")):
        wanted = rounded(inputs[x]) @ rounded(floats.weights[w])
        scale = np.sqrt(inputs[x].shape[-1])
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-5 * scale)


def rounded(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers that bfloat16 holds, as doubles."""
    bits = x.view(np.uint32)
    even = bits + 0x7FFF + (bits >> 16 & 1)
    return (even & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def test_the_build_multiplies_matrices(codes: Products, tmp_path: Path) -> None:
    if disassembler() is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    model = onnx.parser.parse_model(CODES)
    model.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in codes.weights.items())
    options = Options(target=TRIPLE, variant="i8mm_bf16")
    artefact = compile_to_folder(model, tmp_path, options, emit=("o",))
    needed = "+dotprod,+i8mm,+bf16"
    assert undeclared(artefact.files["o"], needed) == []
    assert len(undeclared(artefact.files["o"], "+dotprod,+bf16")) > 99
