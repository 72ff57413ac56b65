"""The examples of old operators in compiled code: all of an opset in one model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from opset_example import Example
from opset_list import ALL

import cuvil

OPSETS = sorted({e.opset for e in ALL})


def joined(examples: Sequence[Example]) -> onnx.ModelProto:
    """One model of all examples; what is known at import is an initializer."""
    whole = onnx.GraphProto(name="examples")
    for k, example in enumerate(examples):
        graph = onnx.compose.add_prefix_graph(example.model.graph, f"e{k}_")
        fixed = {f"e{k}_{name}": value for name, value in example.fixed.items()}
        whole.node.extend(graph.node)
        whole.input.extend(v for v in graph.input if v.name not in fixed)
        whole.output.extend(graph.output)
        whole.initializer.extend(graph.initializer)
        whole.initializer.extend(onnx.numpy_helper.from_array(v, n) for n, v in fixed.items())
    opset = onnx.helper.make_opsetid("", examples[0].opset)
    return onnx.helper.make_model(whole, ir_version=8, opset_imports=[opset])


@pytest.mark.parametrize("opset", OPSETS)
def test_compiled_code_keeps_old_meanings(opset: int):
    examples = [e for e in ALL if e.opset == opset]
    engine = cuvil.compile(joined(examples), cache=False)
    feeds = {f"e{k}_{n}": v for k, e in enumerate(examples) for n, v in e.feeds.items()}
    results = iter(engine.run(None, feeds))
    for example in examples:
        for want in example.expected:
            got = next(results)
            assert got.dtype == want.dtype, example.name
            np.testing.assert_allclose(
                got, want, rtol=max(example.rtol, 2e-5), atol=1e-6, err_msg=example.name
            )
