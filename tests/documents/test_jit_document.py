"""docs/jit.md: each program runs and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "jit.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program(number: int, tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAMS[number])
    expected = re.findall(r"print.*# prints (.*)$", PROGRAMS[number], re.MULTILINE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "CUVIL_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert expected and [line for line in lines if line in expected] == expected, done.stdout
