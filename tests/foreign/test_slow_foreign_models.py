"""Models of the zoo, compiled for other machines, agree with ONNX Runtime under qemu."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign.machines import EVERY, needs
from models.checks import zoo_case

from cuvil.aot.write import compile_to_folder
from cuvil_runtime import include_dir
from tools.conformance.c_program import caller
from tools.conformance.forms.emulated import options_for
from tools.foreign import Machine
from tools.models import trials
from tools.models.judge import OnnxRuntime, assert_close

NAMES = ["silero-vad", "ocr-cls", "magika", "mobilenet-v2", "resnet18", "resnet18-u8s8"]


@EVERY
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_onnxruntime(machine: Machine, name: str, tmp_path: Path) -> None:
    needs(machine)
    case = zoo_case(name)
    artefact = compile_to_folder(case.path, tmp_path, options_for(machine))
    program, peer = caller(Path(include_dir()), machine), OnnxRuntime(case)
    trial = next(iter(trials.usual(case)))
    found = program.call(artefact, trial.inputs)
    for output, ref in peer.outputs(trial.inputs).items():
        assert_close(f"{trial.label}: {output}", found[output], ref, case.tolerance)
