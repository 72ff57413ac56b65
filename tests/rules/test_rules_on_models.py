"""Rules on real models: numbers stay, the forms of every phase are kept, transposes vanish."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import cuvil.ops
from cuvil.frontends.onnx.model import import_model
from cuvil.ir.graph import Graph
from cuvil.ops.interpreter import run
from cuvil.rewrite.engine import RewriteOptions, run_phases
from cuvil.rewrite.verify import verify_phase
from tools.models import zoo
from tools.models.case import ZooError

assert cuvil.ops is not None
MODELS = {  # what is left of some ops, at most
    "silero-vad": {"transpose": 2},
    "silero-vad-sequence": {"transpose": 0},
    "ocr-cls-short": {"transpose": 1, "hardswish": 18, "max": 0},
    "magika": {"contract": 1, "transpose": 0},
}


def counts(graph: Graph) -> Counter[str]:
    return Counter(op.name.removeprefix("cuvil.") for op in graph.ops())


@pytest.mark.parametrize("name", MODELS)
def test_numbers_stay(name: str) -> None:
    try:
        case = zoo.get(name)
    except ZooError as error:
        pytest.skip(str(error))
    before, graph = (import_model(case.path) for _ in range(2))
    run_phases(graph, RewriteOptions(after_phase=lambda phase, g: verify_phase(g, phase)))
    feeds = case.inputs(seed=0)
    for key, want in run(before, feeds).items():
        got = run(graph, feeds)[key]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
    left = counts(graph)
    assert {n: left[n] for n in MODELS[name]} == MODELS[name]
