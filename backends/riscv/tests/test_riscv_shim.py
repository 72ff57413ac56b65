"""Detection by answers of machines that are not here: kernels old and new, registers of any width;
and by an emulated one that answers by itself."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import cuvil_backend_riscv
from cuvil_backend_riscv.features import FEATURES
from tools.foreign import Machine, compile_c
from tools.models.c_program import c_compiler

TRIPLE = "riscv64-linux-gnu"
SHIM = Path(cuvil_backend_riscv.__file__).parent / "shim" / "cpu_riscv.c"
CHECK = Path(__file__).with_name("shim_check.c")
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f'-DSHIM="{SHIM.resolve()}"']
ASK = """
#include SHIM
#include <stdio.h>
int main(void) { printf("%llx", (unsigned long long)cuvil_riscv_features()); }
"""


def test_features_of_machines_that_answer(tmp_path: Path) -> None:
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path / "check"
    subprocess.run([*compiler, *FLAGS, str(CHECK), "-o", str(program)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the features of the machine that runs it."""
    machine = Machine(TRIPLE)
    if lacking := machine.lacking():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("ask")
    source = folder / "ask.c"
    source.write_text(ASK)
    return compile_c(machine, [source], folder / "ask", FLAGS)


@pytest.mark.parametrize(
    ("cpu", "vectors"),
    [
        ("rv64", set()),
        ("rv64,v=true,vlen=128", {"v", "zvl128b"}),
        ("rv64,v=true,vlen=256", {"v", "zvl128b", "zvl256b"}),
        ("rv64,v=true,vlen=1024", {"v", "zvl128b", "zvl256b", "zvl512b"}),
    ],
)
def test_features_of_an_emulated_machine(cpu: str, vectors: set[str], ask: Path) -> None:
    command = Machine(TRIPLE, cpu).command(ask)
    mask = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout, 16)
    found = {name for name, feature in FEATURES.items() if mask >> feature.bit & 1}
    assert found == {"m", "a", "f", "d", "c"} | vectors


def test_the_shims_bits_are_those_of_the_table() -> None:
    (names,) = re.findall(r"enum \{\s*(CUVIL_RV_M.*?)\};", SHIM.read_text(), re.S)
    order = [name.strip().removeprefix("CUVIL_RV_").lower() for name in names.split(",")]
    assert order == [feature.name for feature in sorted(FEATURES.values(), key=lambda f: f.bit)]
