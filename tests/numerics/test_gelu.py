"""The forms of GELU that exporters write, in every float type, against float64."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import cuvil

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
ALPHA = float(np.float32(1.702))
BIAS = 0.375


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def gelu(x):
    return x / 2 * np.vectorize(math.erfc)(-x / math.sqrt(2))


def gelu_tanh(x):
    return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


FORMS = {
    "Gelu": ("", {}, gelu, 0),
    "Gelu, tanh": ("", {"approximate": "tanh"}, gelu_tanh, 0),
    "Gelu, microsoft": ("com.microsoft", {}, gelu, 0),
    "QuickGelu": ("com.microsoft", {"alpha": ALPHA}, lambda x: x * sigmoid(ALPHA * x), 0),
    "FastGelu": ("com.microsoft", {}, gelu_tanh, 0),
    "FastGelu, bias": ("com.microsoft", {}, gelu_tanh, BIAS),
    "BiasGelu": ("com.microsoft", {}, gelu, BIAS),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_error(form, kind):
    domain, attrs, meaning, bias = FORMS[form]
    size = 10 ** np.linspace(-6, 4, 1000)
    x = np.concatenate([np.linspace(-40, 40, 4000), size, -size]).astype(TYPES[kind])
    operands = {"x": x, **({"b": np.full(x.shape, bias, x.dtype)} if bias else {})}
    tensor = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node(form.split(",")[0], [*operands], ["y"], domain=domain, **attrs)
    inputs = [helper.make_tensor_value_info(n, tensor, x.shape) for n in operands]
    outputs = [helper.make_tensor_value_info("y", tensor, x.shape)]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets)
    value = cuvil.compile(model).run(None, operands)[0].astype(np.float64)
    wide = (x + operands.get("b", np.zeros_like(x))).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = meaning(wide)
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    error = np.abs(value - exact) / (eps * np.maximum(1, np.abs(wide)))
    assert error.max() <= 2, (wide[error.argmax()], value[error.argmax()], exact[error.argmax()])
