"""The README's programs: what stands there compiles, runs and prints what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.documents import document_commands
from tests.documents.document_commands import add_commands
from tools.models.sources import Packaged

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
MODEL = Packaged("silero_vad", "data/silero_vad.onnx", "silero-vad")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)


def first_block(language: str, word: str) -> str:
    """The first block of a language with a word in it."""
    return next(block for block in blocks(language) if word in block)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, and with `cuvil` and `python` as commands in bin/."""
    place = tmp_path_factory.mktemp("readme")
    shutil.copy(MODEL.location(), place)
    add_commands(place)
    return place


def shell(folder: Path, text: str) -> str:
    """What a block of commands prints when it runs in the folder."""
    done = document_commands.shell(folder, text)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commented(code: str, sign: str) -> list[str]:
    """What a program says that it prints: the comments that end its print lines."""
    pattern = rf"print.*{re.escape(sign)} ?prints (.*?)(?: \*/)?$"
    return re.findall(pattern, code, re.MULTILINE)


def test_the_python_example(folder: Path):
    code = first_block("python", "cuvil.compile")
    assert len(code.splitlines()) <= 12
    (folder / "example.py").write_text(code)
    expected = commented(code, "#")
    assert expected and shell(folder, "python example.py").splitlines() == expected


@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc on this machine")
def test_the_c_example(folder: Path):
    code = first_block("c", "vad_inference")
    assert len(code.splitlines()) <= 14
    (folder / "example.c").write_text(code)
    expected = commented(code, "/*")
    commands = first_block("sh", "cc -I")
    assert expected and shell(folder, commands).splitlines()[-1:] == expected


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_pictures_are_there(document: Path):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} points to {target}"


def test_the_score_is_no_exaggeration():
    said, total = re.search(
        r"More than ([\d,]+) of the ([\d,]+) cases", README.read_text()
    ).groups()
    listed = (ROOT / "tests" / "conformance" / "unsupported.txt").read_text().splitlines()
    failing = [line for line in listed if line and not line.startswith("#")]
    assert int(total.replace(",", "")) - len(failing) > int(said.replace(",", ""))
