"""Every operator that takes indices: negative ones, and such as lie outside: row B12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error, RuntimeFailure
from tests.faults.cases import FORMS, Array, Model, arange, check, outputs_of

TABLE = arange(3, 4)
Build = Callable[[Model, str, str], str]


def scatter(reduction: str | None, axis: int) -> Build:
    more = {"reduction": reduction} if reduction else {}
    return lambda m, x, i: m.op("ScatterElements", x, i, m.const(np.full((2, 2), 9.0, "f4")),
                                axis=axis, **more)  # fmt: skip


def scatter_nd(reduction: str | None) -> Build:
    more = {"reduction": reduction} if reduction else {}
    return lambda m, x, i: m.op("ScatterND", x, i, m.const(np.full((2,), 9.0, "f4")), **more)


def one_hot(m: Model, x: str, i: str) -> str:
    return str(m.op("OneHot", i, m.const(4, np.int64), m.const([0, 1], np.float32), axis=0))


def scattered(index: Array, axis: int, reduce: Any = None) -> Array:
    out = TABLE.copy()
    for at in np.ndindex(*index.shape):
        place = list(at)
        place[axis] = index[at]
        out[tuple(place)] = 9 if reduce is None else reduce(out[tuple(place)], 9)
    return out


def scattered_nd(index: Array, reduce: Any = None) -> Array:
    out = TABLE.copy()
    for row in index:
        out[tuple(row)] = 9 if reduce is None else reduce(out[tuple(row)], 9)
    return out


# How it is built, indices that are right, what is right, indices of which one lies outside.
LOOKUPS: dict[str, tuple[Build, Array, Callable[[Array], Array], Array]] = {
    "gather": (lambda m, x, i: m.op("Gather", x, i, axis=1), np.array([[0, -1], [-4, 3]]),
               lambda i: TABLE[:, i], np.array([[0, -5], [-4, 3]])),
    "gather_last": (lambda m, x, i: m.op("Gather", x, i, axis=-2), np.array([-3, 2]),
                    lambda i: TABLE[i], np.array([2, 3])),
    "elements": (lambda m, x, i: m.op("GatherElements", x, i, axis=-1), np.full((3, 2), -1),
                 lambda i: np.take_along_axis(TABLE, i, 1), np.full((3, 2), 4)),
    "gather_nd": (lambda m, x, i: m.op("GatherND", x, i), np.array([[-1, -1], [0, -2]]),
                  lambda i: TABLE[tuple(i.T)], np.array([[-1, -1], [0, -5]])),
    "scatter": (scatter(None, 1), np.array([[-1, 0], [1, -4 + 2]]), lambda i: scattered(i, 1),
                np.array([[-1, 0], [1, 4]])),
    "scatter_add": (scatter("add", 0), np.array([[-1, 0], [1, -1]]),
                    lambda i: scattered(i, 0, np.add), np.array([[-1, 0], [-4, -1]])),
    "scatter_max": (scatter("max", -1), np.array([[-1, 0], [1, -1]]),
                    lambda i: scattered(i, 1, np.maximum), np.array([[-1, 0], [1 << 40, -1]])),
    "scatter_nd": (scatter_nd(None), np.array([[-1, 0], [0, -4]]), scattered_nd,
                   np.array([[-1, 0], [3, 0]])),
    "scatter_nd_mul": (scatter_nd("mul"), np.array([[-1, 1], [-1, 1]]),
                       lambda i: scattered_nd(i, np.multiply), np.array([[-1, 1], [0, -5]])),
}  # fmt: skip


def model(name: str, index: Array, dtype: Any, form: str) -> tuple[Model, str]:
    m = Model(18, form)
    dims = ["n", 2] if form == "symbolic" and "_nd" in name else None  # rows of a known length
    x, i = m.feed(TABLE), m.feed(index, dims, dtype)
    m.keep(LOOKUPS[name][0](m, x, i))
    return m, i


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, t) for n in LOOKUPS for t in ((np.int64,) if "_nd" in n else (np.int32, np.int64))],
)
def test_b12_negative_indices_of_every_operator(name: str, dtype: Any, form: str) -> None:
    _, good, right, _ = LOOKUPS[name]
    check(model(name, good, dtype, form)[0].run()[0], right(good))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LOOKUPS)
def test_b12_indices_outside_are_an_error(name: str, form: str) -> None:
    _, good, right, bad = LOOKUPS[name]
    if form == "folded":
        with pytest.raises(Error):
            model(name, bad, np.int64, form)[0].run()
        return
    m, i = model(name, good, np.int64, form)
    engine = m.engine()
    for outside in (bad, np.full_like(good, -(1 << 63)), np.full_like(good, (1 << 63) - 1)):
        with pytest.raises(RuntimeFailure):
            outputs_of(m, engine, {i: outside})
    check(outputs_of(m, engine)[0], right(good))  # the engine still works


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.uint8])
def test_b12_one_hot_leaves_out_what_is_outside(dtype: Any, form: str) -> None:
    m = Model(13, form)
    index = np.array([0, 3, 4, 250]) if dtype is np.uint8 else np.array([0, -1, 4, -5])
    m.keep(one_hot(m, "", m.feed(index, dtype=dtype)))
    rows = [0, 3, None, None]
    check(m.run()[0].T, [[float(k == r) for k in range(4)] for r in rows])


OTHERS: dict[str, tuple[int, Callable[[Model], str]]] = {
    "compress": (17, lambda m: m.op("Compress", m.feed(TABLE), m.feed([True] * 9), axis=0)),
    "reverse_sequence": (17, lambda m: m.op("ReverseSequence", m.feed(TABLE),
                                            m.feed([1, 9, 1, 1], dtype=np.int64))),
    "reverse_negative": (17, lambda m: m.op("ReverseSequence", m.feed(TABLE),
                                            m.feed([1, -2, 1, 1], dtype=np.int64))),
    "roi_align": (17, lambda m: m.op(
        "RoiAlign", m.feed(arange(1, 1, 4, 4)), m.feed([[0, 0, 2, 2]], dtype=np.float32),
        m.feed([7], dtype=np.int64), output_height=2, output_width=2)),
    "max_unpool": (17, lambda m: m.op(
        "MaxUnpool", m.feed(arange(1, 1, 2, 2)),
        m.feed([[[[0, 5], [1 << 40, -7]]]], dtype=np.int64), kernel_shape=[2, 2],
        strides=[2, 2])),
    "array_feature": (17, lambda m: m.op("ArrayFeatureExtractor", m.feed(TABLE),
                                         m.feed([9], dtype=np.int64), domain="ai.onnx.ml")),
    "gather_scalar": (17, lambda m: m.op("Gather", m.feed(TABLE), m.feed(-7, dtype=np.int64))),
    "embedding": (17, lambda m: m.op(
        "EmbedLayerNormalization", m.feed([[99, 0]], dtype=np.int32), None, m.const(TABLE),
        m.const(TABLE), None, m.const(np.ones(4, "f4")), m.const(np.zeros(4, "f4")),
        domain="com.microsoft")),
    "lengths": (17, lambda m: m.op(
        "RNN", m.feed(arange(2, 1, 1)), m.const(np.ones((1, 1, 1), "f4")),
        m.const(np.ones((1, 1, 1), "f4")), None, m.feed([77], dtype=np.int32), hidden_size=1)),
    "lengths_negative": (17, lambda m: m.op(
        "GRU", m.feed(arange(2, 1, 1)), m.const(np.ones((1, 3, 1), "f4")),
        m.const(np.ones((1, 3, 1), "f4")), None, m.feed([-77], dtype=np.int32), hidden_size=1,
        direction="reverse")),
    "tensor_scatter": (24, lambda m: m.op(
        "TensorScatter", m.feed(arange(1, 4, 2)), m.feed(arange(1, 2, 2)),
        m.feed([3], dtype=np.int64), axis=1)),
    "trilu": (17, lambda m: m.op("Trilu", m.feed(TABLE), m.feed(1 << 62, dtype=np.int64))),
    "cumsum": (17, lambda m: m.op("CumSum", m.feed(TABLE), m.feed(9, dtype=np.int64))),
    "topk": (17, lambda m: m.op("TopK", m.feed(TABLE), m.feed([9], dtype=np.int64), outputs=2)[0]),
    "split": (17, lambda m: m.op("Split", m.feed(TABLE), m.feed([9, -6], dtype=np.int64),
                                 outputs=2)[0]),
    "tile": (17, lambda m: m.op("Tile", m.feed(TABLE), m.feed([-1, 2], dtype=np.int64))),
    "expand": (17, lambda m: m.op("Expand", m.feed(TABLE), m.feed([2, 4], dtype=np.int64))),
    "window": (17, lambda m: m.op("HannWindow", m.feed(-3, dtype=np.int64))),
    "constant_of_shape": (17, lambda m: m.op("ConstantOfShape", m.feed([-3], dtype=np.int64))),
    "range": (17, lambda m: m.op("Range", m.feed(0, dtype=np.int64), m.feed(5, dtype=np.int64),
                                 m.feed(0, dtype=np.int64))),
    "eye": (17, lambda m: m.op("OneHot", m.feed([1], dtype=np.int64), m.feed(-4, dtype=np.int64),
                               m.const([0, 1], np.float32))),
    "dft": (17, lambda m: m.op("DFT", m.feed(arange(1, 4, 1)), m.feed(-4, dtype=np.int64))),
}  # fmt: skip


ANSWERED = ("trilu", "roi_align", "max_unpool", "lengths", "lengths_negative", "reverse_negative",
            "window")  # fmt: skip


@pytest.mark.parametrize("form", ["fixed", "folded", "library"])
@pytest.mark.parametrize("name", OTHERS)
def test_b12_what_lies_outside_is_an_error_or_of_the_input(name: str, form: str) -> None:
    """Numbers that an operator reads where to go, and that lead nowhere."""
    opset, build = OTHERS[name]
    m = Model(opset, form)
    m.keep(build(m))
    try:
        (got,) = m.run()
    except Error as error:
        assert "\n" not in str(error)
        return
    assert name in ANSWERED, got
    assert np.isfinite(got).all() and (np.abs(got) <= 12).all()
