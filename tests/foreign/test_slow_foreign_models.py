"""Models of the zoo, compiled for other machines, agree with ONNX Runtime under qemu."""

from __future__ import annotations

import pytest
from foreign.machines import EVERY, needs
from models.checks import zoo_case

from tools.foreign import Machine
from tools.models import emulated

NAMES = ["silero-vad", "ocr-cls", "magika", "mobilenet-v2", "resnet18", "resnet18-u8s8"]


@EVERY
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_onnxruntime(machine: Machine, name: str) -> None:
    needs(machine)
    zoo_case(name)
    (report,) = emulated.verify([name], [machine], count=2)
    assert report.problems == []
    assert (report.inputs, report.machine) == (2, machine) and report.bound <= 1
    assert report.bound > 0 or name == "resnet18-u8s8"  # of bytes all may be alike
