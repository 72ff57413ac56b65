"""A sample of ONNX's own suite in compiled code, with everything else out of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cuvil.onnx_backend import CuvilBackend
from tools.conformance.crew import run_cases, surroundings
from tools.conformance.lists import differences, known
from tools.conformance.suite import Suite

EVERY = 34

INTERPRETERS_ARE_GONE = """
from tools.conformance import ReferenceBackend, PlanBackend, guard
from tools.conformance.suite import Suite
import onnx, onnx.reference
from cuvil.onnx_backend import CuvilBackend

guard.install()
for backend in (ReferenceBackend, PlanBackend):
    reason = Suite(backend).run("test_relu").reason
    assert "only compiled code may compute" in reason, reason
outcome = Suite(CuvilBackend).run("test_relu")
assert outcome.passed, outcome
node = onnx.helper.make_node("Relu", ["x"], ["y"])
try:
    onnx.reference.ReferenceEvaluator(node).run(None, {"x": 0})
except guard.NotNativeError:
    print("only compiled code computes")
"""


def test_nothing_but_compiled_code_computes_in_a_native_form():
    command = [sys.executable, "-W", "ignore", "-c", INTERPRETERS_ARE_GONE]
    done = subprocess.run(command, env=surroundings(), capture_output=True, text=True, check=False)
    assert done.stdout == "only compiled code computes\n", done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore")
def test_a_sample_passes_in_compiled_code():
    names = Suite(CuvilBackend).names()[::EVERY]
    outcomes = run_cases("static", names, jobs=1)
    assert len(outcomes) >= 59 and sum(o.passed for o in outcomes) > 50
    assert differences(outcomes, known("static")) == []
