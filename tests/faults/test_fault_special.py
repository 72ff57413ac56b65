"""NaN, infinities and empty axes through every operator and type: rows B17, B22, B23."""

from __future__ import annotations

import itertools

import ml_dtypes  # noqa: F401 - makes numpy know "bfloat16"
import numpy as np
import pytest

from tests.faults.cases import FORMS, Array, Model, check, f32

NAN, INF = float("nan"), float("inf")
FLOATS = ("f4", "f2", "f8", "bfloat16")

REDUCED = {
    "ReduceSum": lambda x, a: x.sum(a),
    "ReduceSumSquare": lambda x, a: (x * x).sum(a),
    "ReduceL1": lambda x, a: np.abs(x).sum(a),
    "ReduceL2": lambda x, a: np.sqrt((x * x).sum(a)),
    "ReduceLogSum": lambda x, a: np.log(x.sum(a)),
    "ReduceLogSumExp": lambda x, a: np.log(np.exp(x).sum(a)),
    "ReduceMean": lambda x, a: x.mean(a),
    "ReduceProd": lambda x, a: x.prod(a),
    "ReduceMax": lambda x, a: x.max(a),
    "ReduceMin": lambda x, a: x.min(a),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", REDUCED)
def test_b17_axes_absent_empty_and_given(kind: str, form: str) -> None:
    """Without axes all of them, or, if so asked, none: the function of each element remains."""
    m, wants = Model(18, form), []
    data = f32([[0.5, 2, 3], [1, 0.25, 4]])
    x, none = m.feed(data), m.const(np.zeros(0, np.int64))
    for axes, chosen in ((None, ()), (none, ()), (m.const([-1], np.int64), (1,)),
                         (m.const([0, 1], np.int64), (0, 1))):  # fmt: skip
        for noop, keep in itertools.product((0, 1), (0, 1)):
            m.keep(m.op(kind, x, axes, keepdims=keep, noop_with_empty_axes=noop))
            over = chosen or (() if noop else (0, 1))
            want = np.asarray(REDUCED[kind](data.astype("f8"), over))
            wants.append(np.expand_dims(want, over) if keep else want)
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want)


EMPTY = {"ReduceSum": 0, "ReduceSumSquare": 0, "ReduceL1": 0, "ReduceL2": 0, "ReduceLogSum": -INF,
         "ReduceLogSumExp": -INF, "ReduceProd": 1, "ReduceMax": -INF, "ReduceMin": INF}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "i8"])
def test_b17_nothing_to_reduce(dtype: str, form: str) -> None:
    m, wants = Model(18, form), []
    x, axes = m.feed(np.zeros((2, 0, 3), dtype)), m.const([1], np.int64)
    for kind, value in EMPTY.items():
        if np.dtype(dtype).kind != "f" and kind in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
            continue
        if dtype == "u1" and kind not in ("ReduceMax", "ReduceMin"):
            continue
        m.keep(m.op(kind, x, axes, keepdims=0))
        if abs(value) == INF and np.dtype(dtype).kind != "f":
            value = np.iinfo(dtype).min if value < 0 else np.iinfo(dtype).max
        wants.append(np.full((2, 3), value, dtype))
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_b22_one_nan_in_every_operator(dtype: str, form: str) -> None:
    """17 elements, a NaN at each place in turn: where it is read, the result is NaN."""
    m, wants, n = Model(18, form), [], 17
    data = np.tile(np.linspace(-4, 4, n), (n, 1)).astype(dtype)
    np.fill_diagonal(data, NAN)
    wide, hole = data.astype("f8"), np.eye(n, dtype=bool)
    x, low, high = m.feed(data), m.const(-2, dtype), m.const(2, dtype)

    def add(name: str, want: Array) -> None:
        m.keep(name)
        wants.append(want)

    add(m.op("Clip", x, low, high), np.clip(wide, -2, 2))
    add(m.op("Clip", x, None, high), np.minimum(wide, 2))
    add(m.op("Clip", x, low), np.maximum(wide, -2))
    add(m.op("Clip", x, high, low), np.where(hole, NAN, -2))
    add(m.op("Min", x, high), np.minimum(wide, 2))
    add(m.op("Max", low, x), np.maximum(wide, -2))
    add(m.op("Relu", x), np.maximum(wide, 0))
    add(m.op("LeakyRelu", x, alpha=0.5), np.where(wide < 0, wide / 2, wide))
    add(m.op("PRelu", x, high), np.where(wide < 0, wide * 2, wide))
    add(m.op("Abs", x), np.abs(wide))
    one, axes = np.full((n, 1), NAN), m.const([1], np.int64)
    for kind in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"):
        add(m.op(kind, x, axes), one)
        add(m.op(kind, x, m.const([0], np.int64)), one.T)
    if dtype != "bfloat16":
        add(m.op("ArgMax", x, axis=1), np.arange(n)[:, None])
        add(m.op("ArgMin", x, axis=1), np.arange(n)[:, None])
        image = m.op("Unsqueeze", x, m.const([1], np.int64))
        pairs = np.lib.stride_tricks.sliding_window_view(wide, 2, axis=1).max(-1)
        add(m.op("MaxPool", image, kernel_shape=[2]), pairs[:, None])
        add(m.op("GlobalMaxPool", image), one[:, None])
    add(m.op("Softmax", x), np.full((n, n), NAN))
    add(m.op("Sign", x), np.sign(wide))
    for got, want in zip(m.run(), wants, strict=True):
        check(got.astype("f8"), want.astype(dtype).astype("f8"), 1e-2 if dtype != "f4" else 1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_b23_algebra_keeps_special_values(dtype: str, form: str) -> None:
    m, wants = Model(18, form), []
    v = np.array([1, INF, NAN, -2, -INF, 0.0, -0.0], dtype)
    w = v.astype("f8")
    x, zero, one = m.feed(v), m.const(0, dtype), m.const(1, dtype)
    c = np.array([True, False, False, True, True, False, True])
    cond = m.feed(c)

    def add(name: str, want: Array) -> None:
        m.keep(name)
        wants.append(want)

    with np.errstate(all="ignore"):
        add(m.op("Mul", x, zero), w * 0)
        add(m.op("Mul", zero, x), w * 0)
        add(m.op("Sub", x, x), w - w)
        add(m.op("Div", zero, x), 0 / w)
        add(m.op("Div", x, x), w / w)
        add(m.op("Div", x, zero), w / 0)
        add(m.op("Div", one, m.op("Div", one, x)), 1 / (1 / w))
        add(m.op("Add", x, m.op("Neg", x)), w - w)
        add(m.op("Pow", x, zero), np.ones(7))
        add(m.op("Pow", one, x), np.ones(7))
        add(m.op("Where", cond, x, zero), np.where(c, w, 0))
        add(m.op("Mul", m.op("Mul", x, zero), m.const(2, dtype)), w * 0)
        add(m.op("Add", m.op("Mul", x, zero), x), w * 0 + w)
        add(m.op("Sub", m.op("Add", x, m.const(3, dtype)), m.const(3, dtype)), w + 3 - 3)
        add(m.op("Sqrt", m.op("Mul", x, x)), np.abs(w))
        add(m.op("Exp", m.op("Log", m.op("Abs", x))), np.abs(w))
        add(m.op("Max", x, m.op("Neg", x)), np.maximum(w, -w))
    for name, is_nan in ((m.op("Mul", x, zero), True), (m.op("Sub", x, x), True)):
        add(m.op("IsNaN", name) if is_nan else name, ~np.isfinite(w))
    if dtype != "bfloat16":
        add(m.op("IsInf", x), np.isinf(w))
        add(m.op("Equal", x, x), w == w)
    for got, want in zip(m.run(), wants, strict=True):
        check(got.astype("f8"), want.astype("f8"), 1e-2 if dtype != "f4" else 1e-5)
