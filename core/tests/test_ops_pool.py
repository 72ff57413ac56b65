"""Pooling: windows over pads and past them, both layouts, indices of maxima."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, make_op, rand, same

X = np.arange(1, 17, dtype="f4").reshape(1, 1, 4, 4)


def pool(x: np.ndarray, kernel: tuple[int, ...], out: tuple[int, ...], **attrs: object):
    """Checks both layouts against each other and their lowerings; gives the result."""
    n = x.ndim - 2
    full = {"strides": (1,) * n, "dilations": (1,) * n, "pads": (0,) * 2 * n, **attrs}
    full |= {"kernel": kernel, "out": out}
    (first,) = check("pool", x, **full)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    (other,) = check("pool", last, **full, layout="channels_last")
    same(np.moveaxis(other, -1, 1), first, 1e-6)
    return first


def test_mean_divides_by_what_lies_inside_the_pads() -> None:
    """A window that the ceil rule lets hang over the pads counts only what is inside them."""
    more = {"kind": "avg", "strides": (2, 2), "pads": (1, 1, 1, 1)}
    got = pool(X, (3, 3), (3, 3), count_include_pad=True, **more)
    want = [[1.55556, 3.33333, 2], [6.33333, 11, 6], [4.5, 7.5, 4]]
    np.testing.assert_allclose(got[0, 0], want, rtol=1e-5)
    got = pool(X, (3, 3), (3, 3), **more)
    np.testing.assert_allclose(got[0, 0, 0], [3.5, 5, 6], rtol=1e-6)


def test_a_window_of_pads_only_is_no_nan() -> None:
    got = pool(rand(1, 1, 2), (1,), (4,), kind="avg", pads=(1, 1))
    assert got[0, 0, 0] == 0 and got[0, 0, 3] == 0


@pytest.mark.parametrize("kind", ["max", "avg", "lp"])
def test_attributes(kind: str) -> None:
    x = rand(1, 2, 5, 4)
    pool(x, (2, 3), (2, 4), kind=kind, strides=(2, 1), pads=(0, 1, 0, 1))
    pool(x, (2, 2), (3, 2), kind=kind, dilations=(2, 2))
    pool(rand(1, 1, 30), (20,), (6,), kind=kind, strides=(2,), p=3.0)
    pool(rand(1, 2, 2, 2, 2), (2, 1, 2), (1, 2, 1), kind=kind, p=1.0)


def test_max_of_nan_and_integers() -> None:
    assert np.isnan(pool(np.float32([[[1, np.nan, 0]]]), (2,), (2,), kind="max")).all()
    pool(rand(1, 2, 4, dtype="i1"), (2,), (3,), kind="max")


@pytest.mark.parametrize("storage_order", [0, 1])
def test_argmax(storage_order: int) -> None:
    x = rand(2, 2, 4, 3)
    more = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 0, 0, 1)}
    values, where = check(
        "pool_argmax", x, kernel=(2, 2), out=(4, 3), storage_order=storage_order, **more
    )
    order = x if storage_order == 0 else x.transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(order.reshape(-1)[where], values)
    check("pool_argmax", np.float32([[[3, 3, np.nan, 1]]]), kernel=(2,), out=(3,),
          strides=(1,), dilations=(1,), pads=(0, 0))  # fmt: skip


@pytest.mark.parametrize(
    "attrs", [{"kernel": (0,)}, {"strides": (0,)}, {"kind": "median"}, {"out": (1, 1)}]
)
def test_refusals(attrs: dict) -> None:
    full = {"kind": "max", "kernel": (2,), "strides": (1,), "dilations": (1,), "pads": (0, 0)}
    with pytest.raises(ValueError, match="pool"):
        make_op("pool", [rand(1, 1, 4)], {**full, "out": (3,), **attrs}, False)
