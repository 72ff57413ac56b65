"""One library on emulated cpus of every kind: each runs the best build that it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil_runtime import include_dir
from tools.conformance.c_program import Caller, caller
from tools.foreign import Machine
from tools.foreign_cases import ForeignCase, cases, check, disassembler, undeclared
from tools.models.c_program import CProgramError

TRIPLE = "aarch64-linux-gnu"
BEST = {  # case -> qemu's cpu -> the build that it runs
    "floats_fp32": {"cortex-a53": "neon", "cortex-a76": "neon", "max": "neon"},
    "floats_bf16": {"cortex-a72": "neon", "cortex-a76": "neon", "max": "i8mm_bf16"},
    "codes": {"cortex-a53": "neon", "cortex-a76": "dotprod", "max": "i8mm_bf16"},
}
CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Compiles a case once."""
    made: dict[str, Artefact] = {}

    def compiled(case: ForeignCase) -> Artefact:
        if case.name not in made:
            folder = tmp_path_factory.mktemp(case.name)
            made[case.name] = compile_to_folder(case.proto, folder, case.options_for(TRIPLE))
        return made[case.name]

    return compiled


def on(cpu: str) -> Machine:
    machine = Machine(TRIPLE, cpu)
    if lacking := machine.lacking():
        pytest.skip(lacking)
    return machine


@pytest.mark.parametrize(
    ("name", "cpu", "build"),
    [(name, cpu, build) for name, row in BEST.items() for cpu, build in row.items()],
)
def test_each_cpu_runs_its_build(name: str, cpu: str, build: str, library) -> None:
    program = caller(Path(include_dir()), on(cpu))
    check(CASES[name], program.call(library(CASES[name]), CASES[name].inputs))
    assert program.variant == build


def test_every_build_gives_the_same_bytes(library) -> None:
    case, found = CASES["codes"], []
    for build in ("i8mm_bf16", "dotprod", "neon"):
        program = Caller(Path(include_dir()), on("max"), {"CUVIL_VARIANT": build})
        found.append(program.call(library(case), case.inputs)["y"].tobytes())
        program.close()
    assert len(set(found)) == 1


def test_a_build_that_the_cpu_lacks_is_an_error_not_a_crash(library) -> None:
    case = CASES["codes"]
    program = Caller(Path(include_dir()), on("cortex-a53"), {"CUVIL_VARIANT": "dotprod"})
    with pytest.raises(CProgramError, match=r"variant 'dotprod' .* missing here: dotprod"):
        program.call(library(case), case.inputs)
    program.close()


def test_instructions_of_a_feature_are_told_from_others(tmp_path: Path) -> None:
    if disassembler() is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    options = CASES["codes"].options_for(TRIPLE, "dotprod")
    artefact = compile_to_folder(CASES["codes"].proto, tmp_path, options, emit=("o",))
    assert undeclared(artefact.files["o"], "+dotprod") == []
    assert len(undeclared(artefact.files["o"], "-dotprod")) > 9
