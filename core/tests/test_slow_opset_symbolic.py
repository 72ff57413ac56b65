"""The examples of old operators again, with a symbol for every extent of their inputs."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from opset_example import Example
from opset_list import ALL

from cuvil.errors import Error
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter

# They ask for the extents of weights or indices, or for how many parts there are.
NEED_EXTENTS = ("GatherND", "ScatterND", "Conv", "ConvTranspose", "DeformConv", "SplitToSequence")


def with_symbols(example: Example) -> onnx.ModelProto:
    """The model with one symbol for each extent above 1; equal extents stay equal."""
    model = onnx.ModelProto()
    model.CopyFrom(example.model)
    for value in model.graph.input:
        if value.name not in example.fixed:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value > 1:
                    dim.dim_param = f"d{dim.dim_value}"
    for value in model.graph.output:
        value.ClearField("type")
    return model


@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_any_extent_will_do(example: Example):
    try:
        graph = import_model(with_symbols(example), values=dict(example.fixed))
    except Error as error:
        assert re.search(r"known number|a fixed extent", str(error))
        assert example.name.split("-")[0] in NEED_EXTENTS
        return
    results = list(interpreter.run(graph, dict(example.feeds)).values())
    for got, want in zip(results, example.expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=example.rtol, atol=1e-6)
