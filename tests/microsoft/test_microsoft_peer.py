"""com.microsoft operators against ONNX Runtime, whose own they are."""

from __future__ import annotations

import onnxruntime
import pytest
from microsoft.examples import EXAMPLES, Example
from microsoft.peer_models import check, feeds_of, model_of

from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter

LABELS = [f"{e.op}-{k}" for k, e in enumerate(EXAMPLES)]


@pytest.mark.parametrize("example", EXAMPLES, ids=LABELS)
def test_numbers_are_those_of_onnx_runtime(example: Example):
    model, feeds = model_of([example]), feeds_of([example])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, feeds)
    graph = import_model(model)
    graph.module.verify()
    results = list(interpreter.run(graph, feeds).values())
    for got, want in zip(results, expected, strict=True):
        check(example, got, want)
