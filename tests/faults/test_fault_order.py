"""Top-k, arg-max and slices of every type, length and direction: rows B13, B14 and B24."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error
from tests.faults.cases import FORMS, Array, Model, arange, check, outputs_of

RNG = np.random.default_rng(13)
NUMBERS = ("f4", "f2", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def numbers(dtype: str, *shape: int) -> Array:
    """Few values, so many ties, the ends of the type's range among them."""
    kind = np.dtype(dtype)
    ends = [-np.inf, np.inf] if kind.kind == "f" else [np.iinfo(kind).min, np.iinfo(kind).max]
    values = np.array([*ends, 0, 1, 2], kind)
    return values[RNG.integers(0, len(values), shape)]


def ranked(x: Array, k: int, axis: int, largest: int) -> tuple[Array, Array]:
    """The k first by value, NaN above all, and by index among equals."""
    rows = np.moveaxis(x, axis, -1)
    index = np.zeros([*rows.shape[:-1], k], np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        row = rows[at]
        place = np.unique(row, return_inverse=True)[1]  # NaN is the greatest, and one value
        order = sorted(range(len(row)), key=lambda i: (-place[i] if largest else place[i], i))
        index[at] = order[:k]
    index = np.moveaxis(index, -1, axis)
    return np.take_along_axis(x, index, axis), index


@pytest.mark.parametrize(
    ("form", "dtype"), [("fixed", d) for d in NUMBERS] + [("symbolic", "f4"), ("folded", "f2")]
)
def test_b13_top_k(form: str, dtype: str) -> None:
    m, wants = Model(17, form), []
    table = numbers(dtype, 4, 9)
    if dtype.startswith("f"):
        table[1, ::4] = np.nan
    x = m.feed(table)
    for axis, largest, k in itertools.product((1, 0, -1), (0, 1), (0, 1, 3, 4)):
        count = m.const([k], np.int64)
        m.keep(*m.op("TopK", x, count, outputs=2, axis=axis, largest=largest))
        wants += ranked(table, k, axis, largest)
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)


def test_b13_a_count_of_the_run() -> None:
    m = Model()
    x, k = m.feed(arange(5), dims=["n"]), m.feed([3], dtype=np.int64)
    m.keep(*m.op("TopK", x, k, outputs=2))
    engine = m.engine()
    for n, count in ((5, 3), (5, 5), (1, 0), (2, 2)):
        feeds = {x: arange(n), k: np.array([count])}
        values, index = outputs_of(m, engine, feeds)
        check(values, arange(n)[::-1][:count])
        check(index, np.arange(n)[::-1][:count])
    for n, count in ((2, 3), (5, -1), (5, 1 << 40)):
        with pytest.raises(Error):
            outputs_of(m, engine, {x: arange(n), k: np.array([count])})


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("fixed", d) for d in ("f4", "f2", "i1", "u2", "i4", "u8")]
    + [("symbolic", "f4"), ("folded", "i4")],
)
def test_b24_extrema(form: str, dtype: str) -> None:
    m, wants = Model(17, form), []
    lengths = (1, 16, 33, 70) if form == "fixed" else (17,)
    for n, axis, last in itertools.product(lengths, (1, 2), (0, 1)):
        shape = [2, 3, 2]
        shape[axis] = n
        data = numbers(dtype, *shape)
        x = m.feed(data)
        for kind, find in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            m.keep(m.op(kind, x, axis=axis, keepdims=1, select_last_index=last))
            turned = np.flip(data, axis) if last else data
            at = find(turned, axis=axis, keepdims=True)
            wants.append(n - 1 - at if last else at)
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)


def test_b24_where_the_extremum_alone_is() -> None:
    """At every place of every length about a vector's."""
    m = Model()
    for n in (15, 16, 17, 31, 32, 33):
        x = m.feed(np.eye(n, dtype=np.int8))
        m.keep(m.op("ArgMax", x, axis=1, keepdims=0), m.op("ArgMax", x, axis=0, keepdims=0))
        m.keep(m.op("ArgMin", m.op("Sub", m.const(np.int8(0)), x), axis=1, keepdims=0))
    for got in m.run():
        np.testing.assert_array_equal(got, np.arange(len(got)))


LONG, INT = np.iinfo(np.int64), np.iinfo(np.int32)
BOUNDS = [
    (9, 0, -1), (9, 2, -1), (9, 0, -3), (-1, LONG.min, -1), (-1, INT.min, -2), (0, 5, -1),
    (20, 3, -1), (3, LONG.max, 2), (-100, 100, 3), (7, 7, 1), (LONG.max, LONG.min, -4),
    (LONG.min, LONG.max, 4), (0, 10, 99), (9, -11, -99), (0, 10, LONG.max), (9, -11, LONG.min),
    (-11, 3, 1), (10, 20, 1), (-1, -1, -1), (4, -7, 1), (4, -7, -1),
]  # fmt: skip


def sliced(x: Array, start: int, end: int, step: int) -> Array:
    """Bounds as in the ONNX text: those beyond the axis are its ends."""
    n = len(x)
    if step > 0:
        low, high = (min(max(v + n if v < 0 else v, 0), n) for v in (start, end))
    else:
        low, high = (min(max(v + n if v < 0 else v, -1), n - 1) for v in (start, end))
    return x[np.arange(low, high, step)]


def fits(bounds: tuple[int, ...], dtype: Any) -> bool:
    kind = np.iinfo(dtype)
    return all(kind.min <= v <= kind.max for v in bounds)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_b14_constant_bounds(dtype: Any, form: str) -> None:
    m, wants = Model(17, form), []
    line = arange(10)
    x = m.feed(line)
    for bounds in (b for b in BOUNDS if fits(b, dtype)):
        start, end, step = (m.const([v], dtype) for v in bounds)
        m.keep(m.op("Slice", x, start, end, m.const([-1], dtype), step))
        wants.append(sliced(line, *bounds))
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("form", ["fixed", "symbolic", "library"])
def test_b14_bounds_of_the_run(form: str, dtype: Any) -> None:
    m = Model(17, form)
    x = m.feed(arange(10))
    names = [m.feed([v], dims=[1], dtype=dtype) for v in (0, 1, 1)]
    m.keep(m.op("Slice", x, names[0], names[1], m.const([0], dtype), names[2]))
    engine = m.engine()
    for bounds in (b for b in BOUNDS if fits(b, dtype)):
        feeds = {n: np.array([v], dtype) for n, v in zip(names, bounds, strict=True)}
        check(outputs_of(m, engine, feeds)[0], sliced(arange(10), *bounds))
    with pytest.raises(Error):
        outputs_of(m, engine, {names[2]: np.zeros(1, dtype)})


def test_b14_several_axes_of_open_extents() -> None:
    m = Model()
    x = m.feed(arange(4, 5, 6), dims=["a", "b", "c"])
    starts, ends = m.const([-1, 1, 5], np.int64), m.const([-9, LONG.max, 0], np.int64)
    m.keep(m.op("Slice", x, starts, ends, m.const([0, -2, 2], np.int64),
                m.const([-2, 2, -1], np.int64)))  # fmt: skip
    engine = m.engine()
    for shape in ((4, 5, 6), (1, 1, 1), (9, 2, 3), (2, 3, 40)):
        data = arange(*shape)
        want = data[-1 : (-9 if shape[0] >= 9 else None) : -2, 1::2, min(5, shape[2] - 1) : 0 : -1]
        check(outputs_of(m, engine, {x: data})[0], want)
