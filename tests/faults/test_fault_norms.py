"""Norms and softmax of numbers far from zero, and of old opsets: rows B09, B11, B29, B32, B51."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes  # noqa: F401 - makes numpy know "bfloat16"
import numpy as np
import pytest

from tests.faults.cases import FORMS, Array, Model, check

FAR = {
    "steps": np.array([[40000, 40001, 40002, 40003]]),
    "small": 1000 + np.arange(16)[None] * 1e-3,
    "low": -3e5 + np.arange(8)[None],
    "same": np.full((1, 8), 12345.0),
}


def two_pass(x: Array, epsilon: float = 1e-5) -> Array:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


def by_parts(m: Model, x: str, last: str) -> str:
    """A layer norm as exporters write it, by a root or its reciprocal."""
    axes = m.const([-1], np.int64)
    centred = m.op("Sub", x, m.op("ReduceMean", x, axes))
    variance = m.op("ReduceMean", m.op("Mul", centred, centred), axes)
    root = m.op("Sqrt", m.op("Add", variance, m.const(1e-5, "f4")))
    return str(m.op(last, centred, root if last == "Div" else m.op("Reciprocal", root)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FAR)
def test_b09_every_norm_far_from_zero(name: str, form: str) -> None:
    data = FAR[name].astype(np.float32)
    n = data.shape[1]
    m = Model(21, form)
    x, ones, zeros = m.feed(data), m.const(np.ones(n, "f4")), m.const(np.zeros(n, "f4"))
    one, zero, flat = m.const([1.0], "f4"), m.const([0.0], "f4"), m.const([1, n], np.int64)
    image = m.op("Reshape", x, m.const([1, 1, n], np.int64))
    m.keep(m.op("LayerNormalization", x, ones, zeros), m.op("LayerNormalization", x, ones))
    for kind, more in (("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 1})):
        m.keep(m.op("Reshape", m.op(kind, image, one, zero, **more), flat))
    pair = m.op("Add", x, m.const(np.zeros(n, "f4")))
    m.keep(m.op("SkipLayerNormalization", pair, m.const(np.zeros((1, n), "f4")), ones, zeros,
                domain="com.microsoft", epsilon=1e-5))  # fmt: skip
    for got in m.run():
        check(got, two_pass(data), rtol=3e-3, atol=3e-3)


@pytest.mark.parametrize("last", ["Div", "Mul"])
@pytest.mark.parametrize("name", FAR)
def test_b09_norms_by_parts(name: str, last: str) -> None:
    data = FAR[name].astype(np.float32)
    for form in FORMS[:3]:
        m = Model(18, form)
        m.keep(by_parts(m, m.feed(data), last))
        check(m.run()[0], two_pass(data), rtol=3e-3, atol=3e-3)


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f4"])
def test_b09_b51_squares_that_half_precision_does_not_hold(dtype: str) -> None:
    m = Model(23)
    data = np.linspace(200, 400, 64)[None].astype(dtype)
    x, ones, zeros = m.feed(data), m.const(np.ones(64, dtype)), m.const(np.zeros(64, dtype))
    m.keep(m.op("LayerNormalization", x, ones, zeros), m.op("RMSNormalization", x, ones))
    layer, rms = (a.astype("f8") for a in m.run())
    wide = data.astype("f8")
    check(layer, two_pass(data), 2e-2, 2e-2)
    check(rms, wide / np.sqrt((wide**2).mean(-1, keepdims=True)), 2e-2)


@pytest.mark.parametrize(("dtype", "sum_"), [("f2", np.inf), ("bfloat16", 131072.0)])
def test_b51_sums_are_single_and_overflow_only_in_the_result(dtype: str, sum_: float) -> None:
    m = Model(22)
    x = m.feed(np.full((1, 4096, 1, 1), 4, dtype))
    flat = m.op("Reshape", x, m.const([1, 4096], np.int64))
    for value in (8, 2):
        m.keep(m.op("Conv", x, m.const(np.full((1, 4096, 1, 1), value, dtype))))
        m.keep(m.op("MatMul", flat, m.const(np.full((4096, 1), value, dtype))))
    m.keep(m.op("ReduceSum", m.op("Mul", flat, m.const(np.array(2, dtype)))))
    m.keep(m.op("Softmax", m.feed(np.array([[20000, 19000, -20000]], dtype))))
    *sums, total, soft = (a.astype("f8") for a in m.run())
    assert [float(s.item()) for s in sums] == [sum_, sum_, 32768, 32768]
    assert total.item() == 32768 and np.isfinite(soft).all() and soft[0, 0] == 1


@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
def test_b11_axes_of_old_and_new_opsets(kind: str, form: str) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("f4")
    for opset, axis in itertools.product((1, 11, 13), (None, 0, 1, 2, -1)):
        if opset == 1 and axis is not None and axis < 0:
            continue
        m = Model(opset if opset > 1 else 7, form)
        how: dict[str, Any] = {} if axis is None else {"axis": axis}
        m.keep(m.op(kind, m.feed(data), **how))
        if opset == 13:
            rows = np.moveaxis(data, -1 if axis is None else axis, -1)
        else:
            rows = data.reshape(int(np.prod(data.shape[: 1 if axis is None else axis % 3])), -1)
        e = np.exp(rows - rows.max(-1, keepdims=True))
        want = {"Softmax": e / e.sum(-1, keepdims=True),
                "LogSoftmax": np.log(e / e.sum(-1, keepdims=True)),
                "Hardmax": (rows == rows.max(-1, keepdims=True)) * 1.0}[kind]  # fmt: skip
        if opset == 13:
            want = np.moveaxis(want, -1, -1 if axis is None else axis)
        check(m.run()[0], want.reshape(data.shape), 1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("hidden", [-np.inf, -10000.0, -1e9, "least"])
def test_b29_masked_rows_of_attention(hidden: Any, dtype: str) -> None:
    """A row masked whole by infinity is NaN, as its parts say; by a number, an even mean."""
    hidden = float(np.finfo(dtype).min) if hidden == "least" else hidden
    q = np.ones((1, 1, 3, 4), dtype)
    mask = np.zeros((1, 1, 3, 3), dtype)
    with np.errstate(over="ignore"):
        mask[..., 1, :] = hidden
    m = Model(17)
    x, add = m.feed(q), m.feed(mask)
    scores = m.op("MatMul", x, m.op("Transpose", x, perm=[0, 1, 3, 2]))
    scores = m.op("Mul", scores, m.const(0.5, dtype))
    m.keep(m.op("MatMul", m.op("Softmax", m.op("Add", scores, add)), x))
    (got,) = m.run()
    check(got[0, 0, [0, 2]], np.ones((2, 4)))
    check(got[0, 0, 1].astype("f4"), np.full(4, np.nan if np.isinf(mask).any() else 1))


@pytest.mark.parametrize("dtype", ["i1", "u1"])
def test_b32_bytes_of_every_softmax(dtype: str) -> None:
    """Saturated, never wrapped, with every one of 256 bytes as the greatest."""
    kind = np.iinfo(dtype)
    zero = kind.min
    codes = np.arange(kind.min, kind.max + 1, dtype=dtype)[:, None]
    rows = np.concatenate([codes, np.full((256, 3), kind.min, dtype)], 1)
    m = Model(17)
    scale, point = m.const(np.float32(0.2)), m.const(np.array(0, dtype))
    real = m.op("DequantizeLinear", m.feed(rows), scale, point)
    m.keep(m.op("QuantizeLinear", m.op("Softmax", real), m.const(np.float32(1 / 256)),
                m.const(np.array(zero, dtype))))  # fmt: skip
    wide = rows.astype("f8") * np.float32(0.2)
    e = np.exp(wide - wide.max(1, keepdims=True))
    want = np.clip(np.rint(e / e.sum(1, keepdims=True) * 256) + zero, kind.min, kind.max)
    got = m.run()[0].astype("f8")
    assert np.abs(got - want).max() <= 1  # a tie of roundings
    assert got[-1, 0] == kind.max and (got[-1, 1:] == zero).all()
