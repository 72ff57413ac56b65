"""Contractions and convolutions against numpy and hand-made numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_check import check, make_op, meaning, rand, same

SIZES = {"b": 2, "c": 3, "m": 4, "n": 5, "k": 6}


@pytest.mark.parametrize(
    "spec", ["mk,kn->mn", "bmk,bkn->bmn", "bmk,kn->bmn", "mk,nk->nm", "bckm,bckn->bcmn", "k,k->",
             "m,n->mn", "bcm,ncm->bn"]
)  # fmt: skip
def test_specs(spec: str) -> None:
    left, right = spec.split("->")[0].split(",")
    x, y = (rand(*(SIZES[c] for c in part), seed=i) for i, part in enumerate((left, right)))
    (got,) = check("contract", x, y, spec=spec)
    same(got, np.einsum(spec, x, y), 1e-4)


@pytest.mark.parametrize("dtype", ["i4", "u1", "f2", ml_dtypes.bfloat16, "f8"])
def test_dtypes(dtype: str) -> None:
    check("contract", rand(2, 3, dtype=dtype), rand(3, 4, dtype=dtype), spec="mk,kn->mn")


def test_empty_sum_is_zero() -> None:
    x, y = np.zeros((2, 0), "f4"), np.zeros((0, 3), "f4")
    (got,) = check("contract", x, y, spec="mk,kn->mn")
    assert got.tolist() == [[0] * 3] * 2


def test_half_accumulates_in_single_precision() -> None:
    x, w = np.full((1, 4096, 1, 1), 4, np.float16), np.full((1, 4096, 1, 1), 8, np.float16)
    one = {"strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4}
    assert np.isinf(meaning("conv", x, w, **one)[0].item())
    bfloat = [a.astype(ml_dtypes.bfloat16) for a in (x, w)]
    assert float(meaning("conv", *bfloat, **one)[0].item()) == 131072


@pytest.mark.parametrize("spec", ["mk,kn", "mm,mn->n", "mk,kn->mx", "mk,jn->mn", "mk,kn->m"])
def test_bad_specs(spec: str) -> None:
    with pytest.raises(ValueError, match=r"contract|letter|form"):
        make_op("contract", [rand(2, 2), rand(2, 2)], {"spec": spec}, False)


def conv(x: np.ndarray, *weights: np.ndarray, **attrs: object) -> np.ndarray:
    """Checks both layouts against each other and their lowerings; gives the result."""
    n = x.ndim - 2
    name = str(attrs.pop("name", "conv"))
    full = {"strides": (1,) * n, "dilations": (1,) * n, "pads": (0,) * 2 * n, **attrs}
    (first,) = check(name, x, *weights, **full)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    (other,) = check(name, last, *weights, **full, layout="channels_last")
    same(np.moveaxis(other, -1, 1), first, 1e-5)
    return first


def test_conv_is_a_cross_correlation() -> None:
    x = np.arange(5, dtype="f4").reshape(1, 1, 5)
    w = np.float32([[[1, 10, 100]]])
    got = conv(x, w, pads=(1, 0))[0, 0]
    assert got.tolist() == [100.0, 210.0, 321.0, 432.0]


def test_conv_attributes() -> None:
    x, w = rand(1, 2, 4, 5), rand(3, 2, 3, 2)
    conv(x, w, rand(3), strides=(2, 1), pads=(1, 0, 2, 1))
    conv(x, w, dilations=(1, 3), pads=(0, 1, 1, 1))
    conv(rand(2, 4, 2), rand(6, 2, 2), groups=2)
    conv(rand(1, 3, 3), rand(6, 1, 3), groups=3, pads=(1, 1))


def test_conv_other_ranks_and_types() -> None:
    conv(rand(1, 2, 3, 3, 4), rand(2, 2, 2, 1, 2))
    conv(rand(1, 2, 5, dtype="i4"), rand(3, 2, 2, dtype="i4"))
    conv(rand(0, 2, 5), rand(3, 2, 2))
    conv(rand(1, 2, 1), rand(3, 2, 2))  # no window fits


def test_conv_transpose_by_hand() -> None:
    """Full 4x4 result of a 2x2 image, cropped at the end, or at both ends with stride 2."""
    x = np.float32([[[[2, 3], [4, 5]]]])
    w = np.arange(2, 11, dtype="f4").reshape(1, 1, 3, 3)
    same_size = conv(x, w, name="conv_transpose", pads=(1, 1, 1, 1))
    assert same_size.tolist() == [[[[49, 63], [91, 105]]]]
    upper = conv(x, w, name="conv_transpose", strides=(2, 2), pads=(0, 0, 1, 1))
    assert upper.shape == (1, 1, 4, 4) and upper[0, 0, 0].tolist() == [4, 6, 14, 9]
    lower = conv(x, w, name="conv_transpose", strides=(2, 2), pads=(1, 1, 0, 0))
    assert lower[0, 0, 0].tolist() == [12, 29, 18, 21]


def test_conv_transpose_attributes() -> None:
    x = rand(1, 2, 2, 3)
    more = {"strides": (2, 3), "dilations": (2, 1), "pads": (1, 0, 0, 2)}
    conv(x, rand(2, 2, 2, 2), rand(2), name="conv_transpose", output_padding=(1, 2), **more)
    conv(rand(2, 4, 2), rand(4, 3, 2), rand(6), name="conv_transpose", groups=2)
    conv(rand(1, 2, 3), rand(2, 1, 2), name="conv_transpose", pads=(-1, 1))


@pytest.mark.parametrize(
    "attrs",
    [{"strides": (0,)}, {"groups": 0}, {"groups": 3}, {"pads": (0,)}, {"layout": "sideways"}],
)
def test_malformed_convolutions(attrs: dict) -> None:
    full = {"strides": (1,), "dilations": (1,), "pads": (0, 0), **attrs}
    for name, w in (("conv", rand(4, 2, 3)), ("conv_transpose", rand(2, 2, 3))):
        with pytest.raises(ValueError, match="conv"):
            make_op(name, [rand(1, 2, 5), w], full, False)
