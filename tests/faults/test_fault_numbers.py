"""NaN, infinity, cancellation, empty reductions: rows B09, B11, B17, B22, B23, B51 and B52."""

from __future__ import annotations

import numpy as np
import pytest

from tests.faults.cases import Model, arange, check, f32

NAN, INF = float("nan"), float("inf")


def two_pass(x: np.ndarray, epsilon: float) -> np.ndarray:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


def test_b09_norms_of_large_nearly_equal_numbers():
    m = Model()
    steps, small = f32([[40000, 40001, 40002, 40003]]), f32([1000 + np.arange(16) * 1e-3])
    for data in (steps, small):
        n = data.shape[1]
        x, ones, zeros = m.feed(data), m.const(np.ones(n, np.float32)), m.const(np.zeros(n, "f4"))
        m.keep(m.op("LayerNormalization", x, ones, zeros, epsilon=1e-5))
        image = m.op("Reshape", x, m.const([1, 1, n], np.int64))
        one, zero = m.const([1.0], np.float32), m.const([0.0], np.float32)
        m.keep(m.op("InstanceNormalization", image, one, zero, epsilon=1e-5))
        mean = m.op("ReduceMean", x, axes=[-1])
        centred = m.op("Sub", x, mean)
        square = m.op("Mul", centred, centred)
        variance = m.op("ReduceMean", square, axes=[-1])
        deviation = m.op("Sqrt", m.op("Add", variance, m.const(1e-5, np.float32)))
        m.keep(m.op("Div", centred, deviation))
    got = m.run()
    check(got[0][0], [-1.34164, -0.44721, 0.44721, 1.34164], rtol=1e-4)
    for i, result in enumerate(got):
        want = two_pass(steps if i < 3 else small, 1e-5)
        check(result.reshape(want.shape), want, rtol=2e-3, atol=2e-3)


def test_b09_group_norm():
    m = Model(18)
    data = f32([40000, 40001, 40002, 40003]).reshape(1, 2, 2)
    ones, zeros = m.const(np.ones(1, np.float32)), m.const(np.zeros(1, np.float32))
    m.keep(m.op("GroupNormalization", m.feed(data), ones, zeros, num_groups=1, epsilon=1e-5))
    check(m.run()[0].ravel(), [-1.34164, -0.44721, 0.44721, 1.34164], rtol=1e-4)


@pytest.mark.parametrize("how", [{"axis": 1}, {}])
def test_b11_softmax_before_opset_13_flattens(how):
    m = Model(11)
    x = m.feed(arange(2, 3, 4) / 10)
    names = ("Softmax", "LogSoftmax", "Hardmax")
    m.keep(*(m.op(name, x, **how) for name in names))
    soft, logarithm, hard = m.run()
    rows = arange(2, 12) / 10
    e = np.exp(rows - rows.max(1, keepdims=True))
    check(soft.reshape(2, 12), e / e.sum(1, keepdims=True))
    check(logarithm.reshape(2, 12), np.log(e / e.sum(1, keepdims=True)))
    check(hard.sum((1, 2)), [1, 1])


def test_b11_softmax_since_opset_13_is_along_one_axis():
    m = Model(13)
    x = m.feed(arange(2, 3, 4) / 10)
    m.keep(m.op("Softmax", x, axis=1), m.op("Softmax", x))
    along, last = m.run()
    check(along.sum(1), np.ones((2, 4)))
    check(last.sum(2), np.ones((2, 3)))


def test_b17_no_axes_and_noop():
    m = Model(18)
    x, none = m.feed(f32([-1, 2, 3])), m.const(np.zeros(0, np.int64))
    names = ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceLogSumExp")
    for name in names:
        m.keep(m.op(name, x, noop_with_empty_axes=1, keepdims=0))
        m.keep(m.op(name, x, none, noop_with_empty_axes=1, keepdims=0))
        m.keep(m.op(name, x, keepdims=0))
    got = m.run()
    for i, want in enumerate(([-1, 2, 3], [1, 4, 9], [1, 2, 3], [-1, 2, 3])):
        check(got[3 * i], want)
        check(got[3 * i + 1], want)
    check(f32([got[2], got[5], got[8]]), [4, 14, 6])


def test_b17_reducing_an_empty_axis():
    m = Model(18)
    x, axes = m.feed(np.zeros((2, 0), np.float32)), m.const([1], np.int64)
    m.keep(*(m.op(f"Reduce{k}", x, axes, keepdims=0) for k in ("Sum", "Prod", "Max", "Min")))
    for got, want in zip(m.run(), (0, 1, -INF, INF), strict=True):
        check(got, [want, want])


def test_b22_nan_survives():
    m = Model()
    column, ten = m.feed(f32([[NAN], [1], [20]])), m.const([10.0], np.float32)
    m.keep(m.op("Min", column, ten), m.op("Max", column, ten))
    x = m.feed(f32([NAN, -5, 5, 0]))
    low, high = m.const(-1, np.float32), m.const(1, np.float32)
    m.keep(m.op("Clip", x, low, high), m.op("Clip", x, None, high), m.op("Clip", x, high, low))
    m.keep(m.op("Relu", x), m.op("ReduceMax", x, keepdims=0), m.op("ArgMax", x, keepdims=0))
    image = m.op("Reshape", x, m.const([1, 1, 4], np.int64))
    m.keep(m.op("MaxPool", image, kernel_shape=[2]))
    least, most, both, above, crossed, relu, reduced, where, pooled = m.run()
    check(least[:, 0], [NAN, 1, 10])
    check(most[:, 0], [NAN, 10, 20])
    check(both, [NAN, -1, 1, 0])
    check(above, [NAN, -5, 1, 0])
    check(crossed[1:], [-1, -1, -1])
    check(relu, [NAN, 0, 5, 0])
    assert np.isnan(reduced) and where == 0
    assert np.isnan(pooled[0, 0, 0])
    check(pooled[0, 0, 1:], [5, 5])


def test_b22_one_nan_at_every_place_of_every_length():
    m, wants = Model(), []
    low, high = m.const(-2, np.float32), m.const(2, np.float32)
    for n in (1, 3, 8, 15, 16, 17):
        data = np.tile(np.linspace(-4, 4, n, dtype=np.float32), (n, 1))
        np.fill_diagonal(data, NAN)
        x = m.feed(data)
        m.keep(m.op("Clip", x, low, high), m.op("Max", x, low), m.op("ReduceMin", x, axes=[1]))
        wants += [np.clip(data, -2, 2), np.maximum(data, -2), np.full((n, 1), NAN)]
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want)


def test_b23_ieee_results_are_not_simplified_away():
    m = Model()
    x, zero = m.feed(f32([1, INF, NAN, -2])), m.const(0, np.float32)
    product = m.op("Mul", x, zero)
    m.keep(product, m.op("Mul", zero, x), m.op("Sub", x, x), m.op("IsNaN", product))
    m.keep(m.op("Where", m.feed([True, False, False, True]), x, zero), m.op("Div", zero, x))
    m.keep(m.op("Add", x, m.const(-0.0, np.float32)), m.op("Div", x, x))
    left, right, difference, isnan, chosen, quotient, added, ratio = m.run()
    for got in (left, right):
        check(got, [0, NAN, NAN, 0])
        assert np.signbit(got[3])
    check(difference, [0, NAN, NAN, 0])
    np.testing.assert_array_equal(isnan, [False, True, True, False])
    check(chosen, [1, 0, 0, -2])
    check(quotient, [0, 0, NAN, 0])
    check(added, [1, INF, NAN, -2])
    check(ratio, [1, NAN, NAN, 1])


def test_b23_signed_zeros():
    m = Model()
    x = m.feed(f32([0.0, -0.0]))
    m.keep(m.op("Neg", x), m.op("Sub", m.const(0.0, np.float32), x), m.op("Abs", x))
    m.keep(m.op("Add", x, m.const(0.0, np.float32)), m.op("Round", x), m.op("Sqrt", x))
    neg, sub, absolute, added, rounded, root = (np.signbit(a).tolist() for a in m.run())
    assert neg == [True, False]
    assert sub == [False, False]
    assert absolute == [False, False]
    assert added == [False, False]
    assert rounded == root == [False, True]


def test_b51_half_precision_accumulates_in_single():
    m = Model()
    x = m.feed(np.full((1, 4096, 1, 1), 4, np.float16))
    halves = m.const(np.full((1, 4096, 1, 1), 2, np.float16))
    m.keep(m.op("Conv", x, halves))
    m.keep(m.op("Conv", x, m.const(np.full((1, 4096, 1, 1), 8, np.float16))))
    wide = m.feed(np.linspace(200, 300, 64, dtype=np.float16)[None])
    ones, zeros = m.const(np.ones(64, np.float16)), m.const(np.zeros(64, np.float16))
    m.keep(m.op("LayerNormalization", wide, ones, zeros))
    m.keep(m.op("Softmax", m.feed(np.array([[20000, 19999.0, -20000]], np.float16))))
    small, large, norm, soft = m.run()
    assert small.ravel() == 32768 and np.isinf(large.ravel())
    check(norm.astype(np.float32), two_pass(m.feeds[wide], 1e-5), rtol=1e-2, atol=1e-2)
    assert np.isfinite(soft).all()


def test_integer_division_never_traps():
    m = Model()
    least = np.iinfo(np.int64).min
    x = m.feed(np.array([least, 7, -7, 5], np.int64))
    y = m.feed(np.array([-1, 2, 2, 0], np.int64))
    m.keep(m.op("Div", x, y), m.op("Mod", x, y), m.op("Mod", x, y, fmod=1))
    small = m.feed(np.array([-128, 7], np.int8)), m.feed(np.array([-1, 0], np.int8))
    m.keep(m.op("Div", *small), m.op("Mod", *small))
    quotient, modulo, remainder, _, _ = m.run()
    check(quotient[1:3], [3, -3])
    check(modulo[1:3], [1, 1])
    check(remainder[1:3], [1, -1])


def test_unsigned_numbers_past_the_signed_range():
    data = np.array([[2**64 - 1, 2**63 + 1], [2**64 - 3, 2**64 - 2]], np.uint64)
    m = Model(18)
    x = m.feed(data)
    m.keep(m.op("ReduceMin", x, m.const([1], np.int64), keepdims=0))
    m.keep(m.op("Sub", m.const(2**64 - 1, np.uint64), x))
    least, rest = m.run()
    assert least.tolist() == [2**63 + 1, 2**64 - 3]
    assert rest.tolist() == [[0, 2**63 - 2], [2, 1]]
