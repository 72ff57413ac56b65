"""Pad in every mode, wider than the axis and negative: rows B07 and B08."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cuvil.errors import Error
from tests.faults.cases import FORMS, Array, Model, arange, check, outputs_of

MODES = ("constant", "reflect", "edge", "wrap")


def padded(x: Array, pads: list[int], mode: str, **more: Any) -> Array:
    """numpy.pad; what is negative crops first."""
    n = x.ndim
    for axis in range(n):
        low, high = -min(pads[axis], 0), -min(pads[n + axis], 0)
        x = x[(slice(None),) * axis + (slice(low, max(x.shape[axis] - high, low)),)]
    return np.pad(x, [(max(pads[a], 0), max(pads[n + a], 0)) for a in range(n)], mode, **more)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "?"])
def test_b07_every_mode_and_width(dtype: str, form: str) -> None:
    m, wants = Model(19, form), []
    line, table = (arange(3) % 2).astype(dtype), arange(3, 2).astype(dtype)
    for data, pads in (
        (line, [4, 4]), (line, [0, 9]), (line, [1, 0]), (line[:1], [3, 2]), (table, [0, 2, 0, 0]),
        (table, [3, 1, 5, 4]),
    ):  # fmt: skip
        x = m.feed(data)
        for mode in MODES:
            m.keep(m.op("Pad", x, m.const(pads, np.int64), mode=mode))
            wants.append(padded(data, pads, mode))
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("form", FORMS)
def test_b08_cropping_by_negative_pads(form: str) -> None:
    m, wants = Model(19, form), []
    line, table = arange(5) + 1, arange(3, 4) + 1
    x, y = m.feed(line), m.feed(table)
    for pads in ([-4, 4], [-2, -1], [3, -5], [-5, 2], [-1, 0], [0, -3]):
        m.keep(m.op("Pad", x, m.const(pads, np.int64)))
        wants.append(padded(line, pads, "constant"))
    for pads, mode in itertools.product(([-1, 2, 0, -1], [1, -2, -1, 2], [-2, -3, 0, 0]), MODES):
        m.keep(m.op("Pad", y, m.const(pads, np.int64), mode=mode))
        wants.append(padded(table, pads, mode))
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want)


@pytest.mark.parametrize("mode", MODES)
def test_b08_pads_and_extents_of_the_run(mode: str) -> None:
    """A crop of more than there is is an error, or made of the input: never what lies beside it."""
    m = Model(19)
    x = m.feed(arange(5), dims=["n"])
    pads = m.feed(np.array([1, 2], np.int64))
    m.keep(m.op("Pad", x, pads, m.const(np.float32(7)) if mode == "constant" else None, mode=mode))
    try:
        engine = m.engine()
    except Error:
        return
    for n, given in itertools.product((1, 2, 5), ([1, 2], [6, 6], [-1, 2], [0, -1], [-3, -3])):
        feeds = {x: arange(n) + 1, pads: np.array(given, np.int64)}
        try:
            (got,) = outputs_of(m, engine, feeds)
        except Error:
            assert n + min(given[0], 0) + min(given[1], 0) <= 0, (n, given)
            continue
        if n + min(given[0], 0) + min(given[1], 0) > 0:
            beside = {"constant_values": 7} if mode == "constant" else {}
            check(got, padded(arange(n) + 1, given, mode, **beside))
        assert set(got.ravel()) <= {*(arange(n) + 1), 7.0}
