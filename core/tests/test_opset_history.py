"""Old meanings of operators, from models stamped with old opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from opset_example import Example
from opset_list import ALL

from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter


@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_every_version_keeps_its_meaning(example: Example):
    onnx.checker.check_model(example.model)
    graph = import_model(example.model, values=dict(example.fixed))
    graph.module.verify()
    results = list(interpreter.run(graph, dict(example.feeds)).values())
    for got, want in zip(results, example.expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=example.rtol, atol=1e-6)
