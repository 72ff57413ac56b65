"""docs/custom_operators.md: the example runs and prints what it says, the error is the real one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import onnx
import pytest

from tests.documents.document_commands import add_commands, shell

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "custom_operators.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document's files, and with `cuvil` and `python` as commands in bin/."""
    place = tmp_path_factory.mktemp("custom")
    for block in blocks("python"):
        (place / block.splitlines()[0].removeprefix("# ")).write_text(block)
    add_commands(place)
    return place


@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc on this machine")
def test_the_example(folder: Path) -> None:
    expected = re.findall(r"print.*# prints (.*)$", (folder / "use.py").read_text(), re.MULTILINE)
    (commands,) = blocks("sh")
    done = shell(folder, commands)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[: len(expected)] == expected
    assert "net.onnx: agrees with reference on 3 sets of inputs" in lines
    assert (folder / "build" / "libnet.so").exists()


def test_the_error(folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>
      net (float[N, 3] a, double[N, 3] b) => (c)
      { s = com.acme.Swirl<turns = 1.0>(a, b)  c = Neg(s) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "net.onnx")
    said = shell(folder, "cuvil check net.onnx --custom acme_ops.py").stderr
    (shown,) = blocks("text")
    assert said == f"cuvil: {shown}"
