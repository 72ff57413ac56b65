"""ONNX's own suite through the importer and the interpreter.

Compiled code runs the suite by `make conformance`, against the same list.
"""

from __future__ import annotations

import pytest

from tools.conformance import ReferenceBackend, listed, run_suite

# Their weights hold one repeated value, so equal sums in another order decide what they give.
REAL_MODELS = "alexnet|densenet|inception|resnet50|shufflenet|squeezenet|vgg19|zfnet"
NO_REAL_MODELS = f"^(?!.*({REAL_MODELS}))"


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_listed_passes_in_the_interpreter():
    outcomes = run_suite(ReferenceBackend, NO_REAL_MODELS)
    known = listed()
    assert len(outcomes) > 2000
    assert [o for o in outcomes if not o.passed and o.name not in known] == []


def test_every_listed_case_has_a_reason():
    assert all(len(reason) > 10 for reason in listed().values())
