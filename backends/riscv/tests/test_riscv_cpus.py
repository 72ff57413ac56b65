"""One library on emulated cpus with vector registers of every width: each runs the best build that
it can, and all are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.codegen.elf import machine_of
from cuvil.options import Options
from cuvil_backend_riscv.variants import LLVM_TRIPLES
from cuvil_runtime import include_dir
from tools.conformance.c_program import Caller, caller
from tools.foreign import Machine
from tools.foreign_cases import disassembler, undeclared
from tools.models.c_program import CProgramError

TRIPLE = "riscv64-linux-gnu"
COMPRESSED, DOUBLES_IN_REGISTERS = 1, 4  # EF_RISCV_RVC, EF_RISCV_FLOAT_ABI_DOUBLE
BEST = {
    "rv64": "scalar",
    "rv64,v=true,vlen=128": "rvv",
    "rv64,v=true,vlen=256": "rvv256",
    "rv64,v=true,vlen=512": "rvv512",
    "rv64,v=true,vlen=1024": "rvv512",
}
RNG = np.random.default_rng(5)
X = RNG.standard_normal((1, 5, 11, 7), np.float32)
W, D = (RNG.standard_normal(shape, np.float32) for shape in ((41, 5, 3, 3), (41, 1, 5, 5)))


def images() -> onnx.ModelProto:
    """A convolution, one per channel, and half floats: 41 channels, which no tile divides."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        "images (float[B, 5, 11, W] x) => (float[B, 41, 11, W] y, float16[B, 41, 11, W] half) {"
        "  c = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(c)"
        "  d = Conv<pads = [2, 2, 2, 2], group = 41>(r, d0)  y = Sigmoid(d)"
        "  half = Cast<to = 10>(d) }"
    )
    held = {"w": W, "d0": D}
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in held.items())
    return model


def windows(x: np.ndarray, taps: int) -> np.ndarray:
    """[B, C, H, W, taps, taps] around each pixel, with zeros outside."""
    edge = taps // 2
    padded = np.pad(x, [(0, 0), (0, 0), (edge, edge), (edge, edge)])
    return np.lib.stride_tricks.sliding_window_view(padded, (taps, taps), (2, 3))


def wanted(x: np.ndarray) -> np.ndarray:
    """What the last convolution of `images` gives."""
    first = np.maximum(np.einsum("bchwij,ncij->bnhw", windows(x, 3), W), 0)
    return np.einsum("bchwij,cij->bchw", windows(first, 5), D[:, 0])


def on(cpu: str) -> Machine:
    machine = Machine(TRIPLE, cpu)
    if lacking := machine.lacking():
        pytest.skip(lacking)
    return machine


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    """The model, once, with all builds."""
    return compile_to_folder(images(), tmp_path_factory.mktemp("all"), Options(target=TRIPLE))


def check(found: dict[str, np.ndarray], x: np.ndarray) -> None:
    d = wanted(x)
    np.testing.assert_allclose(found["y"], 1 / (1 + np.exp(-d)), atol=2e-5)
    np.testing.assert_allclose(found["half"], d, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("cpu", BEST)
def test_each_width_runs_its_build(cpu: str, library: Artefact) -> None:
    program = caller(Path(include_dir()), on(cpu))
    for x in (X, X[..., :1], X[:, :, :, :6]):
        check(program.call(library, {"x": np.ascontiguousarray(x)}), x)
        assert program.variant == BEST[cpu]


@pytest.mark.parametrize("build", ["rvv", "rvv256"])
def test_code_for_narrow_registers_is_right_on_wide_ones(build: str, library: Artefact) -> None:
    machine = on("rv64,v=true,vlen=512")
    program = Caller(Path(include_dir()), machine, {"CUVIL_VARIANT": build})
    check(program.call(library, {"x": X}), X)
    assert program.variant == build
    program.close()


@pytest.mark.parametrize(
    ("cpu", "build", "missing"),
    [("rv64", "rvv", "v"), ("rv64,v=true,vlen=128", "rvv256", "zvl256b")],
)
def test_a_build_that_the_cpu_lacks_is_refused(
    cpu: str, build: str, missing: str, library: Artefact
) -> None:
    program = Caller(Path(include_dir()), on(cpu), {"CUVIL_VARIANT": build})
    with pytest.raises(CProgramError, match=rf"variant '{build}' .* missing here: .*{missing}"):
        program.call(library, {"x": X})
    program.close()


@pytest.mark.parametrize("triple", LLVM_TRIPLES)
def test_libraries_say_how_floats_pass(triple: str, tmp_path: Path) -> None:
    options = Options(target=triple, variant="scalar")
    made = compile_to_folder(images(), tmp_path, options)
    assert machine_of(made.files["so"].read_bytes()).flags == COMPRESSED | DOUBLES_IN_REGISTERS


def test_a_scalar_build_has_no_instruction_on_vectors(tmp_path: Path) -> None:
    if disassembler() is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    scalar = "+m,+a,+f,+d,+c"
    for build, unknown in (("scalar", False), ("rvv", True)):
        options = Options(target=TRIPLE, variant=build)
        artefact = compile_to_folder(images(), tmp_path / build, options, emit=("o",))
        assert bool(undeclared(artefact.files["o"], scalar)) == unknown
