"""com.microsoft operators in compiled code, many in one model, against ONNX Runtime."""

from __future__ import annotations

import onnxruntime
import pytest
from microsoft.examples import EXAMPLES
from microsoft.peer_models import check, feeds_of, model_of

import cuvil

MANY = 30  # examples in one model


@pytest.mark.parametrize("first", range(0, len(EXAMPLES), MANY))
def test_compiled_code_agrees_with_onnx_runtime(first: int):
    examples = EXAMPLES[first : first + MANY]
    model, feeds = model_of(examples), feeds_of(examples)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    results = cuvil.compile(model, cache=False).run(None, feeds)
    named = [example for example in examples for wanted in example.outputs if wanted]
    for example, got, want in zip(named, results, expected, strict=True):
        check(example, got, want)
