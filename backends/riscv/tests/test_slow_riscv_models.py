"""Real models and ONNX's own cases on emulated cpus with vector registers of every width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options
from cuvil_runtime import include_dir
from tools.conformance.c_program import caller
from tools.conformance.forms.c import on
from tools.conformance.forms.emulated import options_for
from tools.conformance.lists import differences, known
from tools.conformance.suite import Suite
from tools.foreign import Machine
from tools.models import trials, zoo
from tools.models.case import ModelCase, ZooError
from tools.models.judge import OnnxRuntime, assert_close

TRIPLE = "riscv64-linux-gnu"
BEST = {
    "rv64": "scalar",
    "rv64,v=true,vlen=128": "rvv",
    "rv64,v=true,vlen=256": "rvv256",
    "rv64,v=true,vlen=512": "rvv512",
}
NETWORKS = "bvlc|densenet|inception|resnet50|shufflenet|squeezenet|vgg|zfnet"  # slow when emulated
EVERY_NTH = 45  # of the suite's cases, another part of them for each width


def machine(cpu: str) -> Machine:
    found = Machine(TRIPLE, cpu)
    if lacking := found.lacking():
        pytest.skip(lacking)
    return found


@pytest.fixture(scope="module", params=["silero-vad", "ocr-cls", "resnet18"])
def model(request: pytest.FixtureRequest, tmp_path_factory) -> tuple[ModelCase, Artefact]:
    """A model and its library with all builds."""
    try:
        case = zoo.get(request.param)
    except ZooError as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp(request.param)
    return case, compile_to_folder(case.path, folder, Options(target=TRIPLE, name="net"))


@pytest.mark.parametrize("cpu", BEST)
def test_models_agree_with_onnxruntime(cpu: str, model: tuple[ModelCase, Artefact]) -> None:
    case, artefact = model
    program, peer = caller(Path(include_dir()), machine(cpu)), OnnxRuntime(case)
    for trial in [next(trials.usual(case)), *trials.other_sizes(case)]:
        found = program.call(artefact, trial.inputs)
        assert program.variant == BEST[cpu]
        for name, wanted in peer.outputs(trial.inputs).items():
            assert_close(f"{trial.label}: {name}", np.asarray(found[name]), wanted, case.tolerance)


@pytest.mark.parametrize("cpu", BEST)
@pytest.mark.filterwarnings("ignore")
def test_a_part_of_the_suite(cpu: str) -> None:
    emulated = machine(cpu)
    suite = Suite(on([emulated], options_for(emulated, BEST[cpu])))
    cases = suite.names(f"^test_(?!{NETWORKS})")[list(BEST).index(cpu) :: EVERY_NTH]
    outcomes = [suite.run(case) for case in cases]
    assert differences(outcomes, known("c")) == []
    assert len(outcomes) > 30
