"""Statistics of numbers far from zero, where what counts is in their last places."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import cuvil

FAR = 40000.0
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def far_out(kind):
    """Rows of 40000 + i, 40000 + noise, a long one, and one that changes sign."""
    rng = np.random.default_rng(0)
    noise = FAR + rng.standard_normal(777)
    signs = rng.choice([-1.0, 1.0], 777) * noise
    rows = [FAR + np.arange(777), noise, signs]
    return np.array(rows).astype(TYPES[kind])


def run(op, x, *constants, opset=13, **attrs):
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    weights = [
        helper.make_tensor(f"w{i}", helper.np_dtype_to_tensor_dtype(c.dtype), c.shape, c.tolist())
        for i, c in enumerate(constants)
    ]
    node = helper.make_node(op, ["x", *(w.name for w in weights)], ["y"], **attrs)
    inputs = [helper.make_tensor_value_info("x", kind, x.shape)]
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return cuvil.compile(model).run(None, {"x": x})[0]


def off(value, exact, size):
    """The largest error in units of epsilon * size, beyond the rounding of the exact value."""
    nearest = exact.astype(value.dtype).astype(np.float64)
    wide = value.astype(np.float64)
    gap = np.abs(np.subtract(wide, nearest, out=np.zeros_like(wide), where=wide != nearest))
    return float((gap / (float(ml_dtypes.finfo(value.dtype).eps) * size)).max())


def log_softmax(x):
    x = x.astype(np.longdouble)
    below = x - x.max(-1, keepdims=True)
    return below - np.log(np.exp(below).sum(-1, keepdims=True))


def normal(x, epsilon, shift=0.0):
    centred = x.astype(np.longdouble)
    centred = centred - centred.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) + shift
    return (centred / deviation).astype(np.float64)


@pytest.mark.parametrize("kind", TYPES)
def test_softmax(kind):
    x = far_out(kind)
    exact = log_softmax(x).astype(np.float64)
    assert off(run("LogSoftmax", x), exact, np.maximum(-exact, 1)) <= 2
    exact = np.exp(log_softmax(x)).astype(np.float64)
    assert off(run("Softmax", x), exact, np.maximum(exact, 2.0**-14)) <= 4


@pytest.mark.parametrize("kind", TYPES)
def test_log_sum_exp(kind):
    x = far_out(kind)
    wide = x.astype(np.longdouble)
    top = wide.max(-1, keepdims=True)
    exact = (top + np.log(np.exp(wide - top).sum(-1, keepdims=True))).astype(np.float64)
    assert off(run("ReduceLogSumExp", x, axes=[-1]), exact, exact) <= 1


@pytest.mark.parametrize("kind", TYPES)
def test_normalisations(kind):
    x = far_out(kind)
    one, zero = (f(777, x.dtype) for f in (np.ones, np.zeros))
    exact = normal(x, 1e-5)
    allowed = FAR if kind == "f64" else 4  # a float64 mean is not computed any wider
    size = np.maximum(np.abs(exact), 1)
    assert off(run("LayerNormalization", x, one, zero, opset=17), exact, size) <= allowed
    three = one[:3], zero[:3]
    instances = run("InstanceNormalization", x[None], *three)[0]
    assert off(instances, exact, size) <= allowed
    groups = run("GroupNormalization", x[None], *three, opset=21, num_groups=3)[0]
    assert off(groups, exact, size) <= allowed
    rows = run("MeanVarianceNormalization", x[None, :, :, None], axes=[0, 2, 3])[0, :, :, 0]
    assert off(rows, normal(x, 0, 1e-9), size) <= 16


@pytest.mark.parametrize("kind", TYPES)
def test_sums(kind):
    """Running sums and means keep the accuracy of their terms."""
    x = far_out(kind)
    wide = x.astype(np.longdouble)
    size = np.abs(x.astype(np.float64)).cumsum(-1) * (50 if kind == "f64" else 1)
    sums = run("CumSum", x, np.array(1, np.int64))
    assert off(sums, wide.cumsum(-1).astype(np.float64), size) <= 1
    exact = wide.mean(-1, keepdims=True).astype(np.float64)
    assert off(run("ReduceMean", x, axes=[-1]), exact, FAR) <= 2
