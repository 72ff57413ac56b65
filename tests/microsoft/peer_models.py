"""Models of the examples, and whether two engines' results are the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from microsoft.examples import Example

__all__ = ["check", "feeds_of", "model_of"]


def model_of(examples: Sequence[Example]) -> onnx.ModelProto:
    """A node for each example; inputs that an operator has to know are initializers."""
    graph = onnx.GraphProto(name="peer")
    for n, example in enumerate(examples):
        names = [f"x{n}_{k}" if v is not None else "" for k, v in enumerate(example.inputs)]
        outputs = [f"y{n}_{k}" if wanted else "" for k, wanted in enumerate(example.outputs)]
        graph.node.append(
            onnx.helper.make_node(
                example.op, names, outputs, domain=example.domain, **example.attrs
            )
        )
        for k, value in enumerate(example.inputs):
            if value is not None:
                _add(graph, names[k], np.asarray(value), k in example.constants)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs if name)
    opsets = [onnx.helper.make_opsetid("com.microsoft", 1), onnx.helper.make_opsetid("", 16)]
    return onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)


def _add(graph: onnx.GraphProto, name: str, value: np.ndarray, constant: bool) -> None:
    if constant:
        graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    else:
        kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, value.shape))


def feeds_of(examples: Sequence[Example]) -> dict[str, np.ndarray]:
    """The inputs of their model by name."""
    return {
        f"x{n}_{k}": np.asarray(value)
        for n, example in enumerate(examples)
        for k, value in enumerate(example.inputs)
        if value is not None and k not in example.constants
    }


def check(example: Example, got: np.ndarray, want: np.ndarray) -> None:
    """One output of two engines: of one type and shape, and as near as the example says."""
    assert got.dtype == want.dtype and got.shape == want.shape, example.op
    if want.dtype == object:
        assert got.tolist() == want.tolist(), example.op
    elif want.dtype.kind in "iub":
        apart = np.abs(got.astype(int) - want.astype(int)).max(initial=0)
        assert apart <= example.slack, example.op
    else:
        np.testing.assert_allclose(got, want, rtol=example.rtol, atol=1e-5, err_msg=example.op)
