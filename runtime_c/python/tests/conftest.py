"""Compiles the C tests' hand-written models: an object and a library of `add`, and others."""

import shutil
import subprocess
from pathlib import Path

import pytest

RUNTIME = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")


def compile_model(model: str, output: Path, *flags: str) -> Path:
    base = [str(COMPILER), "-O2", "-fPIC", "-fno-stack-protector", "-DCUVIL_TESTS_NOTE"]
    source = RUNTIME / "tests" / f"model_{model}.c"
    include = ["-I", str(RUNTIME / "include")]
    subprocess.run([*base, *include, *flags, str(source), "-o", str(output)], check=True)
    return output


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with add.o, add.so, scale.o and positive.o."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("models")
    for model in ("add", "scale", "positive", "wait", "half"):
        compile_model(model, folder / f"{model}.o", "-c")
    compile_model("add", folder / "add.so", "-shared")
    compile_model("scale", folder / "scale.so", "-shared")
    return folder
