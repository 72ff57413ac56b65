"""docs/calling_from_c.md: the model compiles, the programs print what stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "calling_from_c.md"
CUVIL = 'exec "{}" -c "from cuvil.cli import main; raise SystemExit(main())" "$@"'


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc on this machine")
def test_the_programs_print_what_the_document_says(tmp_path: Path) -> None:
    for block in (*blocks("python"), *blocks("c")):
        (tmp_path / block.splitlines()[0].strip("#/* ")).write_text(block)
    (tmp_path / "bin").mkdir()
    for name, script in (("cuvil", CUVIL), ("python", 'exec "{}" "$@"')):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script.format(sys.executable)}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    (commands,), (error,) = blocks("sh"), blocks("text")
    said = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    printed = [text for block in blocks("c") for text in re.findall(r"\); /\* (.*) \*/", block)]
    assert said.stdout.splitlines()[-3:] == [*printed, error.strip()]
