"""build: a project file to a library, and one line that names file and key for what cannot be."""

from __future__ import annotations

from pathlib import Path

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
        ("target: {runtime: fast}", "there is no key target.runtime"),
        ("quantization: int8", "quantization: weights are not quantised here"),
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
