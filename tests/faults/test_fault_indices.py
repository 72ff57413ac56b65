"""Gather, scatter, top-k, arg-max, slices: rows B12, B13, B14 and B24 of the fault list."""

from __future__ import annotations

import numpy as np
import pytest

from cuvil.errors import Error, ModelError, RuntimeFailure
from tests.faults.cases import Model, arange, check, f32, outputs_of

TABLE = arange(3, 4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_b12_negative_indices(dtype):
    m = Model()
    x = m.feed(TABLE)
    m.keep(m.op("GatherElements", x, m.feed(np.full((3, 2), -1), dtype=dtype), axis=1))
    m.keep(m.op("GatherElements", x, m.feed(np.full((3, 2), -1), dtype=dtype), axis=-1))
    m.keep(m.op("Gather", x, m.feed([0, -1], dtype=dtype), axis=0))
    m.keep(m.op("Gather", x, m.const([0, -1], dtype), axis=-1))
    elements, last, rows, columns = m.run()
    check(elements, [[3, 3], [7, 7], [11, 11]])
    check(last, elements)
    check(rows, TABLE[[0, -1]])
    check(columns, TABLE[:, [0, -1]])


def test_b12_negative_index_tuples():
    m = Model()
    x = m.feed(TABLE)
    m.keep(m.op("GatherND", x, m.feed([[-1, -1], [0, -2]], dtype=np.int64)))
    updates = m.feed(f32([[1] * 4, [2] * 4]))
    m.keep(m.op("ScatterND", x, m.feed([[-1], [0]], dtype=np.int64), updates))
    values = m.const([0, 1], np.float32)
    m.keep(m.op("OneHot", m.feed([0, 2, 4, -1], dtype=np.int64), m.const(5, np.int64), values))
    picked, scattered, hot = m.run()
    check(picked, [11, 2])
    check(scattered, [[2] * 4, TABLE[1], [1] * 4])
    check(hot, np.eye(5)[[0, 2, 4, 4]])


def runtime_lookups() -> list[tuple[Model, list[int], list[int]]]:
    """Models whose second input is an index, with good and bad values of it."""
    found = []

    def add(build, good, bad):
        m = Model()
        m.keep(build(m, m.feed(TABLE), m.feed(np.array(good, np.int64))))
        found.append(pytest.param(m, good, bad, id=m.nodes[-1].op_type))

    row = f32([[9, 9, 9, 9]])
    add(lambda m, x, i: m.op("Gather", x, i, axis=0), [0, -3], [0, 3])
    add(lambda m, x, i: m.op("GatherElements", x, i, axis=1), [[3], [-4], [0]], [[3], [-5], [0]])
    add(lambda m, x, i: m.op("GatherND", x, i), [[2, -4]], [[-4, 0]])
    add(lambda m, x, i: m.op("ScatterND", x, i, m.const(row)), [[-3]], [[1 << 40]])
    add(lambda m, x, i: m.op("ScatterElements", x, i, m.const(row), axis=0),
        [[0, 1, 2, -3]], [[0, 1, 2, -4]])  # fmt: skip
    return found


@pytest.mark.parametrize(("m", "good", "bad"), runtime_lookups())
def test_b12_out_of_range_at_run_time_is_an_error(m, good, bad):
    engine, name = m.engine(), m.inputs[-1].name
    outputs_of(m, engine, {name: np.array(good, np.int64)})
    with pytest.raises(RuntimeFailure):
        outputs_of(m, engine, {name: np.array(bad, np.int64)})
    outputs_of(m, engine, {name: np.array(good, np.int64)})  # the engine still works


def test_b12_out_of_range_constant_is_an_error():
    m = Model()
    m.keep(m.op("Gather", m.feed(TABLE), m.const([0, 7], np.int64)))
    with pytest.raises((ModelError, RuntimeFailure)):
        m.run()


def test_b13_ties_nan_and_unsigned():
    m = Model()

    def top(values, k, **how):
        m.keep(*m.op("TopK", m.feed(values), m.const([k], np.int64), outputs=2, **how))

    nan = float("nan")
    top(f32([1, 3, 3, 2, 3]), 3)
    top(np.array([0, 2, 0, 1], np.uint8), 2, largest=0)
    top(f32([1, nan, 5, 2, nan, 4]), 3)
    top(f32([1, nan, 5, 2, nan, 4]), 3, largest=0)
    top(f32([4, 1, 3, 2]), 2, sorted=0)
    top(f32([4, 1, 3, 2]), 0)
    top(f32([4, 1, 3, 2]), 4)
    got = m.run()
    check(got[1], [1, 2, 4])
    check(got[2], [0, 0])
    check(got[3], [0, 2])
    check(got[5], [1, 4, 2])
    check(got[7], [0, 3, 5])
    assert set(got[8]) == {4, 3}
    assert got[10].shape == (0,)
    check(got[12], [4, 3, 2, 1])


def test_b13_more_than_there_are_is_an_error():
    m = Model()
    m.keep(m.op("TopK", m.feed(arange(4)), m.const([5], np.int64), outputs=2)[0])
    with pytest.raises(Error):
        m.run()


LONG = np.iinfo(np.int64).min
SLICES = (
    (9, 0, -1), (9, 2, -1), (9, 0, -3), (-1, LONG, -1), (-1, np.iinfo(np.int32).min, -2),
    (0, 5, -1), (20, 3, -1), (3, np.iinfo(np.int64).max, 2), (-100, 100, 3), (7, 7, 1),
)  # fmt: skip


def test_b14_slices_with_constant_bounds():
    m = Model()
    x, wants = m.feed(arange(10)), []
    for start, end, step in SLICES:
        bounds = [m.const([v], np.int64) for v in (start, end)]
        m.keep(m.op("Slice", x, *bounds, m.const([0], np.int64), m.const([step], np.int64)))
        wants.append(arange(10)[slice(start, None if end == LONG else end, step)])
    m.keep(m.op("Slice", x, m.const([1], np.int64), m.const([-1], np.int64)))
    wants.append(arange(10)[1:-1])
    wants[4] = arange(10)[::-2]
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want)


def test_b14_slices_with_bounds_of_the_run_are_right_or_refused():
    m = Model()
    start, end = (m.feed([v], dtype=np.int64) for v in (9, 2))
    m.keep(m.op("Slice", m.feed(arange(10)), start, end, m.const([0], np.int64),
                m.const([-1], np.int64)))  # fmt: skip
    try:
        got = m.run()
    except Error:
        return
    check(got[0], arange(10)[9:2:-1])


def test_b24_extremum_beyond_one_vector():
    m = Model()
    early = np.r_[np.zeros(4), -np.ones(12)].astype(np.int32)
    x = m.feed(early)
    m.keep(m.op("ArgMin", x, axis=0, keepdims=0))
    m.keep(m.op("ArgMin", x, axis=0, keepdims=0, select_last_index=1))
    first, last = m.run()
    assert (first, last) == (4, 15)


def test_b24_every_length_with_ties():
    m, wants = Model(), []
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 70):
        data = rng.integers(0, 4, (3, n, 2)).astype(np.float32)
        x = m.feed(data)
        m.keep(m.op("ArgMax", x, axis=1, keepdims=0), m.op("ArgMin", x, axis=1, keepdims=0))
        m.keep(m.op("ArgMax", x, axis=1, keepdims=0, select_last_index=1))
        wants += [data.argmax(1), data.argmin(1), n - 1 - data[:, ::-1].argmax(1)]
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)
