"""32-bit Arm: builds by cpu, and the arithmetic that such cpus lack."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import cuvil_backend_arm64
from cuvil.aot.write import compile_to_folder
from cuvil.errors import TargetError
from cuvil.targets.backend import variants_of
from cuvil.targets.registry import find
from cuvil_runtime import include_dir
from tools.conformance.c_program import caller
from tools.foreign import Machine, compile_c
from tools.foreign_cases import ForeignCase, cases, check

TRIPLE = "armv7-linux-gnueabihf"
SHIM = Path(cuvil_backend_arm64.__file__).with_name("shim")


def on(cpu: str) -> Machine:
    machine = Machine(TRIPLE, cpu)
    if lacking := machine.lacking():
        pytest.skip(lacking)
    return machine


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_each_cpu_runs_its_build(case: ForeignCase, tmp_path: Path) -> None:
    machines = {"neon": on("cortex-a7"), "vfp": on("cortex-a9")}
    artefact = compile_to_folder(case.proto, tmp_path, case.options_for(TRIPLE))
    for build, machine in machines.items():
        program = caller(Path(include_dir()), machine)
        check(case, program.call(artefact, case.inputs))
        assert program.variant == build


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (("armv7",), ["neon", "vfp"]),
        (("armv7:cortex-a15",), ["neon"]),
        (("armv7:cortex-a9",), ["vfp"]),
        (("armv7", "", "+neon,+vfp4"), ["neon"]),
    ],
)
def test_a_cpu_gets_the_build_that_it_runs(target: tuple[str, ...], names: list[str]) -> None:
    assert [build.name for build in variants_of(*find(*target))] == names


@pytest.mark.parametrize(
    "target", [("armv7:cortex-a76",), ("armv7", "", "+sve"), ("aarch64", "", "+vfp4")]
)
def test_names_of_other_triples_are_refused(target: tuple[str, ...]) -> None:
    with pytest.raises(TargetError, match=r"does not run|knows no feature"):
        variants_of(*find(*target))


def test_arithmetic_is_that_of_the_compiler(tmp_path: Path) -> None:
    machine = on("cortex-a9")
    source = Path(__file__).with_name("arithmetic.c")
    flags = ["-std=gnu11", "-Wno-reserved-identifier", "-static", "-I", SHIM]
    program = compile_c(machine, [source], tmp_path / "arithmetic", flags)
    done = subprocess.run(machine.command(program), capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stdout + done.stderr
