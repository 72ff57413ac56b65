"""build: a project file to a library, and one line that names file and key for what cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import cuvil as package
from cuvil.cli.project import read_project
from tests.cli.cli_runner import Command

yaml = pytest.importorskip("yaml", reason="needs PyYAML: tools/setup torch")


def written(folder: Path, text: str) -> Path:
    """A project file with these lines."""
    file = folder / "cuvil.yaml"
    file.write_text(text)
    return file


def test_a_file_of_onnx(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    lines = f"model: {{source: ./{dense.name}}}\nprecision: bf16\nopt_level: 1\nname: net\n"
    written(tmp_path, f"{lines}output: out/libnet.so\ntarget: {{platform: cpu}}\n")
    result = cuvil("build", tmp_path)
    assert result.status == 0 and result.out.startswith("net: ")
    assert package.load(tmp_path / "out").get_inputs()[0].name == "x"
    assert cuvil("build", tmp_path / "cuvil.yaml", "--json").json["manifest"]["name"] == "net"


def test_how_programs_take_the_model(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    lines = f"model: {{source: ./{dense.name}}}\noutput: out\ntarget: {{runtime: static}}\n"
    made = cuvil("build", written(tmp_path, lines), "--json").json["files"]
    assert Path(made["a"]).suffix == ".a" and "so" not in made


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_quantised_weights(cuvil: Command, tmp_path: Path, mode: str) -> None:
    pytest.importorskip("onnxruntime.quantization", reason="needs onnxruntime: tools/setup bench")
    random = np.random.default_rng(0)
    weights = random.normal(size=(256, 256)).astype(np.float32)
    text = """<ir_version: 8, opset_import: ["" : 18]>
      net (float[N, 256] x, float[256, 256] w) => (float[N, 256] y) { y = MatMul(x, w) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del model.graph.input[1]
    onnx.save(model, tmp_path / "net.onnx")
    sets = [random.normal(size=(4, 256)).astype(np.float32) for _ in range(3)]
    (tmp_path / "data").mkdir()
    for number, x in enumerate(sets):
        np.savez(tmp_path / "data" / f"{number}.npz", x=x)
    more = ", data: ./data" if mode == "static" else ""
    lines = "model: {source: net.onnx}\noutput: build/libnet.so\n"
    lines += f"quantization: {{mode: {mode}{more}}}"
    assert cuvil("build", written(tmp_path, lines)).status == 0
    library = tmp_path / "build" / "libnet.so"
    found = package.load(library)(sets[0])
    exact = sets[0] @ weights
    assert 0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()  # rounded, and right
    assert library.stat().st_size < weights.nbytes


def test_calibration_data_that_is_none(cuvil: Command, dense: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime.quantization", reason="needs onnxruntime: tools/setup bench")
    (tmp_path / "empty").mkdir()
    for data, said in (("empty", "there is no file .npz in it"), ("cuvil.yaml", "no file of arra")):
        lines = f"model: {{source: ./{dense.name}}}\nquantization: {{mode: static, data: {data}}}"
        assert said in cuvil("build", written(tmp_path, lines)).err


def test_without_onnxruntime(
    cuvil: Command, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    lines = f"model: {{source: ./{dense.name}}}\nquantization: dynamic"
    assert "quantization needs onnxruntime" in cuvil("build", written(tmp_path, lines)).err


def test_what_a_file_says(tmp_path: Path) -> None:
    text = "model: {source: hf://org/name, task: fill-mask, max_length: 128}\noutput: made"
    read = read_project(written(tmp_path, text))
    assert (read.source, read.task, read.max_length) == ("hf://org/name", "fill-mask", 128)
    assert read.of_transformers and read.output == str(tmp_path / "made")
    assert (read.precision, read.platform, read.pad_to_multiple_of) == ("fp32", "cpu", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: [", "no YAML"),
        ("- model", "the file is to hold keys"),
        ("model: ./a.onnx", "model is to hold keys"),
        ("precision: fp32", "model.source is missing: hf://org/name, ./folder or file.onnx"),
        ("model: {sourc: a}", "there is no key model.sourc; there are model.source"),
        ("target: {speed: fast}", "there is no key target.speed"),
        ("target: {runtime: fast}\nmodel: {source: a}", "one of shared, static, object"),
        (
            "target: {runtime: static}\noutput: libm.so\nmodel: {source: a}",
            "'static', a file .a, but output is",
        ),
        ("quantization: int8\nmodel: {source: cuvil.yaml}", "quantization.mode is 'int8': one of"),
        (
            "quantization: dynamic\nmodel: {source: cuvil.yaml}",
            "quantization is for ONNX files and",
        ),
        (
            "quantization: static\nmodel: {source: a.onnx}",
            "quantization.data, a file .npz of inp",
        ),
        ("quantization: {bits: 4}", "there is no key quantization.bits"),
        ("opt_level: high", "opt_level is 'high', not a whole number"),
        ("model: {source: 3}", "model.source is 3, not a text"),
        ("model: {source: no.onnx}", "no.onnx: no such file or folder"),
        ("model: {source: hf://org/name}", "model.task is missing"),
        ("model: {source: ., task: poetry}", "model.task is 'poetry': one of feature-extraction, "),
        ("model: {source: cuvil.yaml, task: fill-mask}", "model.task is for models of transf"),
    ],
)
def test_what_is_wrong_with_it(cuvil: Command, tmp_path: Path, text: str, said: str) -> None:
    result = cuvil("build", written(tmp_path, text))
    assert result.status == 1 and said in result.err, result.err
    assert f"cuvil: {tmp_path / 'cuvil.yaml'}: " in result.err


def test_no_file(cuvil: Command, tmp_path: Path) -> None:
    assert "cuvil.yaml: there is no such file" in cuvil("build", tmp_path).err
