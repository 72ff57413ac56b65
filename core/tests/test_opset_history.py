"""Old meanings of operators, from models stamped with old opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import f32, node_model
from opset_example import Example, schemas, versions_in
from opset_list import ALL

from cuvil.errors import UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter

KNOWN = schemas()


def deprecated(made: onnx.ModelProto) -> bool:
    """Whether the checker refuses a sound model: it calls GroupNormalization-18 out of date."""
    return any(
        onnx.defs.get_schema(op, version, domain).deprecated
        for domain, op, version in versions_in(made, KNOWN)
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_every_version_keeps_its_meaning(example: Example):
    if not deprecated(example.model):
        onnx.checker.check_model(example.model)
    graph = import_model(example.model, values=dict(example.fixed))
    graph.module.verify()
    results = list(interpreter.run(graph, dict(example.feeds)).values())
    for got, want in zip(results, example.expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=example.rtol, atol=1e-6)


@pytest.mark.parametrize("opset", [1, 6])
def test_dropout_that_trains_by_default_is_refused(opset):
    with pytest.raises(UnsupportedError, match="set is_test=1"):
        import_model(node_model("Dropout", [f32([1, 2])], opset=opset))


@pytest.mark.parametrize("opset", [6, 7, 9])
def test_statistics_of_a_batch_are_refused(opset):
    parameters = [np.ones(3, np.float32)] * 4
    node = node_model("BatchNormalization", [f32([[1, 2, 3]]), *parameters], 5, opset)
    with pytest.raises(UnsupportedError, match="training"):
        import_model(node)
