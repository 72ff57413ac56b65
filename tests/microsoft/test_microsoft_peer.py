"""com.microsoft operators against ONNX Runtime, whose own they are."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from microsoft.examples import EXAMPLES, Example

from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter


def model_of(example: Example) -> onnx.ModelProto:
    """A model of the node; inputs that an operator has to know are initializers."""
    names = [f"x{k}" if v is not None else "" for k, v in enumerate(example.inputs)]
    outputs = [f"y{k}" if wanted else "" for k, wanted in enumerate(example.outputs)]
    node = onnx.helper.make_node(example.op, names, outputs, domain=example.domain, **example.attrs)
    constants, inputs = [], []
    for k, value in enumerate(example.inputs):
        if value is None:
            continue
        if k in example.constants:
            constants.append(onnx.numpy_helper.from_array(np.asarray(value), names[k]))
        else:
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(onnx.helper.make_tensor_value_info(names[k], kind, value.shape))
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = onnx.helper.make_graph([node], "peer", inputs, results, constants)
    opsets = [onnx.helper.make_opsetid("com.microsoft", 1), onnx.helper.make_opsetid("", 16)]
    return onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)


LABELS = [f"{e.op}-{k}" for k, e in enumerate(EXAMPLES)]


@pytest.mark.parametrize("example", EXAMPLES, ids=LABELS)
def test_numbers_are_those_of_onnx_runtime(example: Example):
    model = model_of(example)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {i.name: example.inputs[int(i.name[1:])] for i in session.get_inputs()}
    expected = session.run(None, feeds)
    graph = import_model(model)
    graph.module.verify()
    results = list(interpreter.run(graph, feeds).values())
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "iub":
            assert np.abs(got.astype(int) - want.astype(int)).max(initial=0) <= example.slack
        else:
            np.testing.assert_allclose(got, want, rtol=example.rtol, atol=1e-5)
