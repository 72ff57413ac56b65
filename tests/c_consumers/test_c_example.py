"""The example in examples/c: what its README says, done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from c_consumers.programs import build, run

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "c"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    """The example's model, compiled."""
    folder = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, EXAMPLE / "make_model.py", folder], check=True)
    options = Options(target="x86_64")
    return compile_to_folder(folder / "digits.onnx", folder / "build", options, emit=("so", "a"))


def test_one_call(digits: Artefact, tmp_path: Path) -> None:
    program = build(
        EXAMPLE / "simple.c", tmp_path / "simple", [digits.folder], [digits.files["so"]]
    )
    assert run(program).stdout == "it is a 7\n"


def test_the_full_use(digits: Artefact, tmp_path: Path) -> None:
    program = build(EXAMPLE / "full.c", tmp_path / "full", [digits.folder], [digits.files["a"]])
    result = run(program, environment={"CUVIL_VARIANT": "baseline"})
    assert result.returncode == 0, result.stderr
    first, *lines = result.stdout.splitlines()
    assert first == "variant baseline"
    assert [line.partition(",")[0] for line in lines] == [
        "picture 0: 1",
        "picture 1: 5",
        "picture 0: 1",
    ]
