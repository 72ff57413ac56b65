"""Resize, pooling, transposed convolution, padding: rows B01 to B08 of the fault list."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cuvil.errors import Error
from tests.faults.cases import Model, arange, check, f32
from tests.faults.nearest_pixel import COORDINATES, MODES, nearest


def test_b01_nearest_pixel():
    m = Model(19)
    x = m.feed(arange(1, 1, 3, 3))
    scales, sizes = m.const([1, 1, 1.5, 1.5], np.float32), m.const([1, 1, 4, 4], np.int64)
    line, to64 = m.feed(arange(1, 1, 26)), m.const([1, 1, 64], np.int64)
    wants = []
    for coordinate, mode in itertools.product(COORDINATES, MODES):
        how = {"coordinate_transformation_mode": coordinate, "nearest_mode": mode}
        m.keep(m.op("Resize", x, None, scales, **how), m.op("Resize", x, None, None, sizes, **how))
        m.keep(m.op("Resize", line, None, None, to64, **how))
        for scale in (1.5, 4 / 3):
            at = nearest(3, 4, scale, coordinate, mode)
            wants.append(arange(3, 3)[np.ix_(at, at)][None, None])
        wants.append(arange(26)[nearest(26, 64, 64 / 26, coordinate, mode)][None, None])
    for g, w in zip(m.run(), wants, strict=True):
        check(g, w)


def test_b01_the_printed_row():
    m = Model()
    scales = m.const([1, 1, 1.5, 1.5], np.float32)
    how = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_floor"}
    m.keep(m.op("Resize", m.feed(arange(1, 1, 3, 3)), None, scales, **how))
    check(m.run()[0][0, 0], [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [6, 6, 7, 8]])


def test_b02_cubic_to_one_pixel():
    m = Model()
    x, one = m.feed(arange(1, 1, 4, 4)), m.const([1, 1, 1, 1], np.int64)
    for coordinate in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"):
        m.keep(m.op("Resize", x, None, None, one, mode="cubic",
                    coordinate_transformation_mode=coordinate))  # fmt: skip
    check(np.ravel(m.run()), [7.5, 0, 0, 0])


@pytest.mark.parametrize("opset", [11, 19])
def test_b04_average_pool_counts_what_its_window_covers(opset):
    m = Model(opset)
    x = m.feed(np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4))
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}
    m.keep(m.op("AveragePool", x, count_include_pad=1, **how))
    m.keep(m.op("AveragePool", x, count_include_pad=0, **how))
    # The last window would begin in the padding behind the image: there is none.
    edge = {"kernel_shape": [1, 1], "strides": [3, 3], "pads": [0, 0, 2, 2], "ceil_mode": 1}
    m.keep(m.op("AveragePool", x, count_include_pad=0, **edge))
    with_pad, without, last = m.run()
    check(with_pad[0, 0], [[1.555556, 3.333333, 2], [6.333333, 11, 6], [4.5, 7.5, 4]])
    assert np.isfinite(without).all() and np.isfinite(last).all()
    check(without[0, 0], [[3.5, 5, 6], [9.5, 11, 12], [13.5, 15, 16]])
    assert last.shape == (1, 1, 2, 2)


def test_b06_conv_transpose_auto_pad():
    m = Model()
    x = m.feed(f32([[[[2, 3], [4, 5]]]]))
    w = m.const(np.arange(2, 11, dtype=np.float32).reshape(1, 1, 3, 3))
    same = {"kernel_shape": [3, 3]}
    m.keep(m.op("ConvTranspose", x, w, auto_pad="SAME_UPPER", **same))
    m.keep(m.op("ConvTranspose", x, w, auto_pad="SAME_UPPER", strides=[2, 2], **same))
    m.keep(m.op("ConvTranspose", x, w, auto_pad="SAME_LOWER", strides=[2, 2], **same))
    m.keep(m.op("ConvTranspose", x, w, auto_pad="SAME_UPPER", strides=[2, 2],
                output_padding=[1, 1], **same))  # fmt: skip
    a, b, c, d = m.run()
    check(a[0, 0], [[49, 63], [91, 105]])
    assert b.shape == c.shape == (1, 1, 4, 4)
    check(b[0, 0, 0], [4, 6, 14, 9])
    check(c[0, 0, 0], [12, 29, 18, 21])
    check(d, c)


def test_b07_pads_wider_than_the_axis():
    m = Model(19)
    table, line = m.feed([[1, 1.2], [2.3, 3.4], [4.5, 5.7]], dtype=np.float32), m.feed(arange(3))
    two, four = m.const([0, 2, 0, 0], np.int64), m.const([4, 4], np.int64)
    for mode in ("reflect", "edge", "wrap"):
        m.keep(m.op("Pad", table, two, mode=mode), m.op("Pad", line, four, mode=mode))
    got = m.run()
    rows = f32([[1, 1.2], [2.3, 3.4], [4.5, 5.7]])
    for i, mode in enumerate(("reflect", "edge", "wrap")):
        check(got[2 * i], np.pad(rows, [(0, 0), (2, 0)], mode))
        check(got[2 * i + 1], np.pad(arange(3), 4, mode))


def test_b08_negative_pads_crop():
    m = Model()
    x = m.feed(arange(5))
    for pads in ([-4, 4], [-2, -1], [3, -5], [-5, 2]):
        m.keep(m.op("Pad", x, m.const(pads, np.int64)))
    a, b, c, d = m.run()
    check(a, [4, 0, 0, 0, 0])
    check(b, [2, 3])
    check(c, [0, 0, 0])
    check(d, [0, 0])


@pytest.mark.parametrize(("mode", "pads"), [("reflect", [-4, 4]), ("constant", [-7, 1])])
def test_b08_what_has_no_meaning_is_an_error_or_made_of_the_input(mode, pads):
    m = Model()
    m.keep(m.op("Pad", m.feed(arange(5)), m.const(pads, np.int64), mode=mode))
    try:
        (got,) = m.run()
    except Error:
        return
    assert set(got.ravel()) <= set(range(5))
