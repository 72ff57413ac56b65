"""docs/aot_from_torch.md: its programs and commands run, and print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch.export", reason="needs torch: tools/setup torch")

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "aot_from_torch.md"
COMMAND = "from cuvil.cli import main; raise SystemExit(main())"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document's files, and with `cuvil` and `python` as commands in bin/."""
    place = tmp_path_factory.mktemp("torch_document")
    for block in blocks("python"):
        (place / block.splitlines()[0].removeprefix("# ")).write_text(block)
    (place / "bin").mkdir()
    for name, words in (("cuvil", f"-c '{COMMAND}' \"$@\""), ("python", '"$@"')):
        script = place / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n')
        script.chmod(0o755)
    return place


def shell(folder: Path, text: str) -> str:
    """What commands print that run in the folder."""
    env = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "CUVIL_CACHE_DIR": str(folder / "cache"),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        ["sh", "-e", "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number", range(3))
def test_programs_print_what_the_page_says(folder: Path, number: int) -> None:
    name = blocks("python")[number].splitlines()[0].removeprefix("# ")
    said = blocks("text")[number].replace("FOLDER", str(folder))
    assert shell(folder, f"python {name}") == said


@pytest.mark.parametrize("commands", blocks("sh"))
def test_commands_do_what_the_page_says(folder: Path, commands: str) -> None:
    shell(folder, commands)
    assert list((folder / "build").glob("lib*.so"))
