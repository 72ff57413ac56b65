"""docs/aot_from_torch.md: its programs and commands run, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import document_commands
from tests.documents.document_commands import add_commands

pytest.importorskip("torch.export", reason="needs torch: tools/setup torch")

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "aot_from_torch.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document's files, and with `cuvil` and `python` as commands in bin/."""
    place = tmp_path_factory.mktemp("torch_document")
    for block in blocks("python"):
        (place / block.splitlines()[0].removeprefix("# ")).write_text(block)
    add_commands(place)
    return place


def shell(folder: Path, text: str) -> str:
    """What commands print that run in the folder."""
    done = document_commands.shell(folder, text, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number", range(4))
def test_programs_print_what_the_page_says(folder: Path, number: int) -> None:
    name = blocks("python")[number].splitlines()[0].removeprefix("# ")
    said = blocks("text")[number].replace("FOLDER", str(folder))
    assert shell(folder, f"python {name}") == said


@pytest.mark.parametrize("commands", blocks("sh"))
def test_commands_do_what_the_page_says(folder: Path, commands: str) -> None:
    shell(folder, commands)
    assert list((folder / "build").glob("lib*.so"))
