"""Builds and runs each C test with a sanitizer, where the machine has a C compiler."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = sorted(path.stem for path in (ROOT / "tests").glob("test_*.c"))
SANITIZERS = {
    "plain": ["-O2"],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def sources(test: str) -> list[Path]:
    runtime = [p for p in (ROOT / "src").glob("*.c") if p.stem != "unity"]
    models = list((ROOT / "tests").glob("model_*.c"))
    return [ROOT / "tests" / f"{test}.c", *sorted(models), *sorted(runtime)]


def compile_c(flags: list[str], inputs: list[Path], output: Path) -> None:
    includes = ["-I", str(ROOT / "include"), "-I", str(ROOT / "src")]
    base = [str(COMPILER), "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", *includes]
    subprocess.run([*base, *flags, *map(str, inputs), "-lm", "-o", str(output)], check=True)


@pytest.fixture(scope="session")
def add_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("object") / "add.o"
    flags = ["-c", "-fPIC", "-O2", "-fno-stack-protector", "-DCUVIL_TESTS_NOTE"]
    compile_c(flags, [ROOT / "tests" / "model_add.c"], path)
    return path


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("test", TESTS)
def test_program(test: str, sanitizer: str, tmp_path: Path, add_object: Path) -> None:
    program = tmp_path / test
    compile_c([*SANITIZERS[sanitizer], "-pthread", "-ldl"], sources(test), program)
    done = subprocess.run(
        [str(program), str(add_object)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
