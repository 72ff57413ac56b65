"""numpy in compiled functions: elements, views, expressions, reductions."""

from __future__ import annotations

import numpy as np
import pytest
from jit.same import alike, check

import cuvil

DTYPES = [np.float64, np.float32, np.int64, np.int32, np.uint8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_and_views(dtype):
    def views(a):
        b = a[0]
        return (a[1, 2], a[-1, -1], b[1], a[:, 1], a[::-1], a[1:, :2], a.T, a.shape, len(a),
                a.reshape(-1), a.reshape((3, 2)), a[..., 0], a[:, None, 1], a.size,
                a.ndim)  # fmt: skip

    check(views, (np.arange(6, dtype=dtype).reshape(2, 3),))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_expressions(dtype):
    def expressions(a, b):
        return (a * 2 + 1, a - b, a / 2, a // 2, a % 3, a > b, -a, abs(a), np.exp(-a),
                np.sqrt(a * a), np.where(a > 2, a, b), np.clip(a, 1, 3), np.maximum(a, b),
                a.astype(np.float32), np.tanh(a), np.floor(a / 2), (a > 1) & (a < 4))  # fmt: skip

    a = np.arange(6, dtype=dtype).reshape(2, 3)
    check(expressions, (a, a[::-1].copy()), (a.T, a.T), (a, a[0]), (a, a[:1]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_reductions(dtype):
    def reductions(a):
        return (a.sum(), a.mean(), a.max(), a.min(axis=0), a.sum(axis=1), np.argmax(a),
                np.mean(a, axis=-1), np.max(a, axis=1, keepdims=True), np.any(a > 4),
                np.all(a > 4), np.std(a), np.prod(a + 1), np.argmin(a, axis=0),
                (a * 2).sum())  # fmt: skip

    check(reductions, (np.arange(6, dtype=dtype).reshape(2, 3),))


def test_nan_wins():
    def extremes(a):
        return a.max(), a.min(), np.argmax(a), np.minimum(a, 1.0)

    check(extremes, (np.array([1.0, np.nan, 3.0]),), (np.array([2.0, 1.0]),))


def test_products():
    def products(a, b):
        return a @ b, np.dot(b, b), np.matmul(a, a.T), np.dot(a[0], b)

    check(products, (np.arange(6.0).reshape(2, 3), np.arange(3.0)))

    def square(a):
        return a @ a

    check(square, (np.ones((40, 40)),), (np.eye(3),))


def test_new_arrays():
    def make(n):
        z, o, e = np.zeros((n, 2)), np.ones(n, np.float32), np.empty(n, dtype=np.int32)
        for i in range(n):
            e[i] = i * i
            z[i, 0] = i / 2
        return (z, o, e, np.arange(1, n), np.full(3, 2.5), np.array([1.0, 2.0]),
                np.array([(1, 2), (3, 4)]), np.argsort(-e), np.stack((o, o)),
                np.concatenate((z, z), axis=1), np.zeros_like(z), o.tolist())  # fmt: skip

    check(make, (4,), (1,), (-1,))


def test_writing_into_arguments():
    def scale(a, b):
        a *= 2
        a[0] = 1
        a[:, 1] += b[0]
        a[1, 0] -= 5
        a[1:] = a[:-1]
        return a

    check(scale, (np.arange(6.0).reshape(2, 3), np.arange(2.0)))
    values = np.zeros((2, 2))
    assert cuvil.jit(scale)(values, np.ones(1)) is values


def test_indices_are_checked():
    def pick(a, i):
        return a[i]

    check(
        pick, (np.arange(3.0), 2), (np.arange(3.0), -3), (np.arange(3.0), 3), (np.arange(3.0), -4)
    )

    def neighbours(a, n):
        total = 0.0
        for i in range(1, n):
            total += a[i - 1] * a[i + 1]
        return total

    check(neighbours, (np.arange(5.0), 4), (np.arange(5.0), 5))
    assert cuvil.jit(neighbours)(np.arange(5.0), 0) == 0.0  # numpy's: see docs/jit.md

    def wraps(a):
        total = 0.0
        for i in range(len(a)):
            total += a[i - 2]
        return total

    check(wraps, (np.arange(5.0),), (np.arange(1.0),))


def test_shapes_that_do_not_fit():
    def add(a, b):
        return a + b

    check(add, (np.ones((2, 3)), np.ones(3)))
    with pytest.raises(ValueError, match="broadcast"):
        cuvil.jit(add)(np.ones(3), np.ones(4))


def test_numpy_scalars():
    def scalar(x):
        return x * 2, x + 1.5, x / 2, -x, x > 2, x % 2, x // 2, int(x), float(x)

    check(scalar, (np.float32(2.5),), (np.int64(3),), (np.float64(-1.5),))

    def divide(a):
        return a[0] / a[1], a[0] // a[1]

    with np.errstate(all="ignore"):
        check(divide, (np.array([1.0, 0.0]),), (np.array([1, 0]),))


def test_int32_wraps_as_numpys():
    def double(a):
        return a + a, a[0] * a[0]

    with np.errstate(all="ignore"):
        check(double, (np.array([2**31 - 1], np.int32),))


def test_read_only_arrays_are_not_written():
    def put(a):
        a[0] = 1.0

    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        cuvil.jit(put)(frozen)


def test_results_outlive_the_call():
    @cuvil.jit
    def rows(n):
        table = np.zeros((n, n))
        for i in range(n):
            table[i, i] = i
        return table[1], table

    row, table = rows(50)
    del table
    assert alike(row, np.eye(50)[1])


def test_a_bool_is_a_mask_and_no_index():
    def masked(a, n):
        return a[n > 0].shape

    check(masked, (np.zeros(3), 1), native=False)
