"""Functions of bytes, which are looked up sixteen at a time."""

from __future__ import annotations

import subprocess
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
from tools.foreign_cases import disassembler

TRIPLE = "aarch64-linux-gnu"
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
sigmoids (uint8[N] x) => (uint8[N] y) {
    f = DequantizeLinear(x, xs, xz)
    g = Sigmoid(f)
    y = QuantizeLinear(g, ys)
}"""
NUMBERS = {
    "xs": np.float32(0.05),
    "xz": np.uint8(120),
    "ys": np.float32(1 / 255),
    "yz": np.uint8(0),
}


def model() -> onnx.ModelProto:
    proto = onnx.parser.parse_model(MODEL)
    held = NUMBERS.items()
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in held)
    return proto


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return compile_to_folder(model(), tmp_path_factory.mktemp("bytes"), Options(target=TRIPLE))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 256, 1003])
def test_every_code_finds_its_entry(count: int, artefact: Artefact) -> None:
    machine = Machine(TRIPLE, "cortex-a53")
    if lacking := machine.lacking():
        pytest.skip(lacking)
    x = (np.arange(count) * 101 % 256).astype(np.uint8)
    program = Caller(Path(include_dir()), machine)
    found = program.call(artefact, {"x": x})["y"]
    program.close()
    numbers = 1 / (1 + np.exp(-(x.astype(np.float64) - 120) * np.float32(0.05)))
    exact = numbers * 255
    assert found.dtype == np.uint8 and (np.abs(found - exact) <= 0.5 + 1e-3).all()


def test_tables_are_in_registers(tmp_path: Path) -> None:
    program = disassembler()
    if program is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    artefact = compile_to_folder(model(), tmp_path, Options(target=TRIPLE), emit=("o",))
    command = [program, "-d", str(artefact.files["o"])]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sum("\ttbl\t" in line for line in text.splitlines()) == 4
