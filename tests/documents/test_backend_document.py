"""docs/writing_a_backend.md: its tutorial's commands run, with the package in an environment."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documents import document_commands
from tests.documents.document_commands import add_commands

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "writing_a_backend.md"
PIP = "-m pip install -q --no-index --no-deps --no-build-isolation --target site"
COMMANDS = {
    **document_commands.COMMANDS,
    "pip": f'{PIP} "$2"',  # what it needs is here already
}


def tutorial() -> str:
    """The chapter with the commands."""
    chapters = DOCUMENT.read_text().split("\n## ")
    return next(text for text in chapters if text.startswith("A third-party backend"))


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language in the tutorial, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", tutorial(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, the document's script, and the commands in bin/."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    place = tmp_path_factory.mktemp("backend")
    shutil.copytree(ROOT / "examples" / "backend_npu", place / "examples" / "backend_npu")
    script = next(block for block in blocks("python") if block.startswith("# make_cnn.py"))
    (place / "make_cnn.py").write_text(script)
    add_commands(place, COMMANDS)
    return place


def shell(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Runs commands in the folder, with what was installed there."""
    return document_commands.shell(folder, text, (folder / "site",))


def test_the_tutorial(folder: Path) -> None:
    (commands,) = blocks("sh")
    done = shell(folder, commands)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^npu 0\.1\.0", done.stdout, re.MULTILINE)
    assert re.search(r"^scores: float32 \[1, 10\]", done.stdout, re.MULTILINE)
    said = done.stdout.partition("scores:")[2]
    assert all(word in said for word in ("upload", "npu0_conv", "download"))


def test_the_errors(folder: Path) -> None:
    unknown, outdated = blocks("text")
    said = shell(folder, "cuvil compile cnn.onnx -o build --target npu:npu-v3,cpu").stderr
    assert said == unknown
    package = folder / "site" / "cuvil_backend_npu" / "__init__.py"
    text = package.read_text()
    package.write_text(f'{text}\nobject.__setattr__(BACKEND, "api_version", 9)\n')
    said = shell(folder, "cuvil compile cnn.onnx -o build --target npu,cpu").stderr
    package.write_text(text)
    assert said.startswith("cuvil: unknown target 'npu'") and outdated.strip() in said


def test_the_record_is_the_examples() -> None:
    """What the document shows of it is its code, but for types."""
    code = (ROOT / "examples" / "backend_npu" / "cuvil_backend_npu" / "__init__.py").read_text()
    shown = next(block for block in blocks("python") if "def supports" in block)
    bodies = [line.partition("#")[0].strip() for line in shown.splitlines()]
    missing = [line for line in bodies if line not in code and not line.startswith("def ")]
    assert not missing
