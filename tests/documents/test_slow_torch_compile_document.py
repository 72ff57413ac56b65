"""docs/torch_compile.md: its programs run, and print what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: tools/setup torch")

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "torch_compile.md"
PAIR = re.compile(r"^```python\n# (\S+)\n(.*?)^```\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = {name: (program, said) for name, program, said in PAIR.findall(DOCUMENT.read_text())}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    program, said = PROGRAMS[name]
    (tmp_path / name).write_text(f"# {name}\n{program}")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "CUVIL_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, tmp_path / name], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == said.replace("FOLDER", str(tmp_path))


def test_every_program_of_the_page_is_run() -> None:
    assert len(PROGRAMS) == DOCUMENT.read_text().count("```python\n")
