"""What is compiled for another machine computes what it should there, in every build, and has no
instruction but of the features that the build requires."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign.machines import EVERY, machines, needs

from cuvil.aot.write import compile_to_folder
from cuvil.targets.backend import VariantSpec, variants_of
from cuvil.targets.registry import find
from cuvil_runtime import include_dir
from tools.conformance.c_program import caller
from tools.foreign import Machine
from tools.foreign_cases import ForeignCase, cases, check, disassembler, undeclared

CASES = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


def builds(machine: Machine) -> list[VariantSpec]:
    return variants_of(*find(machine.triple))


@EVERY
@CASES
def test_results(machine: Machine, case: ForeignCase, tmp_path: Path) -> None:
    needs(machine)
    artefact = compile_to_folder(case.proto, tmp_path, case.options_for(machine.triple))
    check(case, caller(Path(include_dir()), machine).call(artefact, case.inputs))


@pytest.mark.parametrize(
    ("machine", "variant"),
    [(machine, variant) for machine in machines() for variant in builds(machine)],
    ids=lambda value: getattr(value, "name", None) or value.triple,
)
def test_no_instruction_but_of_declared_features(
    machine: Machine, variant: VariantSpec, tmp_path: Path
) -> None:
    if disassembler() is None:
        pytest.skip("llvm-objdump (Debian: llvm-22) is not installed")
    facts = variant.facts
    for case in cases():
        options = case.options_for(machine.triple, variant.name)
        artefact = compile_to_folder(case.proto, tmp_path / case.name, options, emit=("o",))
        assert undeclared(artefact.files["o"], facts.features, facts.triple) == []
