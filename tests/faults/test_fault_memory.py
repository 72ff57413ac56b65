"""Addresses, denormal numbers, aliases: rows B41, B50 and B52 of the fault list."""

from __future__ import annotations

import numpy as np
import pytest

from cuvil.errors import Error
from tests.faults.cases import Array, Model, arange, check, f32, outputs_of


def shifted(array: Array, by: int) -> Array:
    """A copy that begins `by` bytes behind a 64-byte boundary."""
    room = np.zeros(array.nbytes + 64 + by, np.uint8)
    start = -room.ctypes.data % 64 + by
    place = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "i8", "f8"])
def test_b50_data_at_any_element_boundary(dtype: str) -> None:
    data = (np.arange(21) % 11).reshape(3, 7).astype(dtype)
    m = Model()
    x = m.feed(data)
    weights = m.const((np.arange(35) % 5).reshape(7, 5).astype(dtype))
    m.keep(m.op("Add", x, x), m.op("ReduceMax", m.op("Abs", x), axes=[1], keepdims=0))
    if dtype in ("f4", "f8"):
        m.keep(m.op("MatMul", x, weights))
    engine, want = m.engine(), None
    for by in (0, 1, 2, 3, 5):
        got = outputs_of(m, engine, {x: shifted(data, by * data.itemsize)})
        want = want or got
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
    check(want[0].astype("f8"), data.astype("f8") * 2)


def test_b50_data_inside_an_element_is_copied_or_refused() -> None:
    data = arange(9)
    room = np.zeros(data.nbytes + 1, np.uint8)
    crooked = np.frombuffer(room.data, np.float32, offset=1, count=9)
    room[1:] = data.view(np.uint8)
    m = Model()
    x = m.feed(data)
    m.keep(m.op("Neg", x))
    try:
        (got,) = outputs_of(m, m.engine(), {x: crooked})
    except Error:
        return
    check(got, -data)


def test_b41_inputs_that_share_memory() -> None:
    base = np.ones(8, np.float32)
    m = Model()
    x, y = m.feed(base[:4]), m.feed(base[2:6])
    m.keep(m.op("Add", m.op("Mul", x, m.const(f32(2))), y))
    engine = m.engine()
    check(outputs_of(m, engine)[0], [3, 3, 3, 3])
    base[:] = np.arange(8)
    check(outputs_of(m, engine, {x: base[:4], y: base[2:6]})[0], [2, 5, 8, 11])
    check(base, np.arange(8))


def test_b41_transposed_and_strided_inputs() -> None:
    m = Model()
    x = m.feed(arange(4, 6))
    m.keep(m.op("Neg", x))
    engine, table = m.engine(), arange(6, 4)
    check(outputs_of(m, engine, {x: table.T})[0], -table.T)
    wide = arange(8, 12)
    check(outputs_of(m, engine, {x: wide[::2, ::2]})[0], -wide[::2, ::2])
    check(outputs_of(m, engine, {x: wide[3::-1, 6:]})[0], -wide[3::-1, 6:])


def test_b52_the_callers_denormals_survive() -> None:
    m = Model()
    x = m.feed(np.full((4, 64), 1e-39, np.float32))
    m.keep(m.op("MatMul", x, m.const(np.full((64, 8), 1e-3, np.float32))), m.op("Exp", x))
    small = np.float32(1e-39)
    product, one = m.run()
    assert np.isfinite(product).all()
    check(one, np.ones((4, 64)))
    assert small * np.float32(0.5) != 0 and np.float32(1e-20) * np.float32(1e-20) != 0
