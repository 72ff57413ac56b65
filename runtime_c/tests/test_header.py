"""The public headers: the example in the comment runs as printed; C++ and C99 programs compile."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "include" / "cuvil"
INCLUDES = ["-I", str(ROOT / "include"), "-I", str(ROOT / "tests")]
CC = shutil.which("cc") or shutil.which("gcc")
CXX = shutil.which("c++") or shutil.which("g++")

pytestmark = pytest.mark.skipif(CC is None or CXX is None, reason="no C compiler")


def example() -> str:
    """The indented code of the first comment of cuvil.h."""
    comment = (HEADERS / "cuvil.h").read_text().split("*/")[0]
    return "\n".join(re.findall(r"^ \*   (.*)$", comment, re.MULTILINE))


def test_example_runs_as_printed(tmp_path: Path) -> None:
    program, binary = tmp_path / "example.c", tmp_path / "example"
    program.write_text(
        '#include <stdio.h>\n#include "models.h"\n'
        "static const float data[4] = {1, 2, 3, 4};\nstatic float result[4];\n"
        f"int main(void) {{\n{example()}\n"
        'printf("%g %g\\n", result[0], result[3]);\nreturn 0;\n}\n'
    )
    sources = [program, ROOT / "tests" / "model_example.c", ROOT / "src" / "unity.c"]
    command = [str(CC), *INCLUDES, *map(str, sources), "-pthread", "-o", str(binary)]
    subprocess.run(command, check=True)
    assert subprocess.check_output([str(binary)], text=True).split() == ["2", "8"]


FORMS = [(file, kind) for file in ("abi.h", "cuvil.h", "loader.h") for kind in ("c99", "c++17")]


@pytest.mark.parametrize(("header", "language"), [*FORMS, ("cuvil.hpp", "c++17")])
def test_headers_stand_alone(header: str, language: str, tmp_path: Path) -> None:
    kind = "c++" if language.startswith("c++") else "c"
    source = tmp_path / "include.src"
    source.write_text(f'#include "cuvil/{header}"\n')
    compiler = str(CXX if kind == "c++" else CC)
    strict = [f"-std={language}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    subprocess.run([compiler, *INCLUDES, *strict, "-x", kind, str(source)], check=True)
