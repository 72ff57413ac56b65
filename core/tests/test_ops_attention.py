"""Attention against its parts: masks, causal order, masked rows, shared heads."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, make_op, rand

Q, K, V = rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 2)


def test_plain() -> None:
    (got,) = check("attention", Q, K, V, scale=0.5)
    scores = np.einsum("bmd,bnd->bmn", Q, K) * 0.5
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(got, weights @ V, rtol=1e-4, atol=1e-6)


def test_masks() -> None:
    check("attention", Q, K, V, rand(3, 5), scale=1.0)
    check("attention", Q, K, V, rand(2, 1, 5), scale=1.0)
    check("attention", Q, K, V, np.tri(3, 5, dtype=bool), scale=1.0)
    check("attention", Q, K, V, scale=1.0, causal=True)
    check("attention", Q, K[:, :2], V[:, :2], scale=1.0, causal=True)


def test_a_masked_row_is_nan_and_others_stay() -> None:
    """As the unfused graph says: the softmax of -inf alone."""
    allowed = np.ones((3, 5), bool)
    allowed[1] = False
    for mask in (allowed, np.where(allowed, 0, -np.inf).astype("f4")):
        (got,) = check("attention", Q, K, V, mask, scale=1.0)
        assert np.isnan(got[:, 1]).all()
        (plain,) = check("attention", Q, K, V, scale=1.0)
        np.testing.assert_allclose(got[:, [0, 2]], plain[:, [0, 2]], rtol=1e-6)


def test_shapes_and_types() -> None:
    check("attention", rand(2, 2, 3, 4), rand(1, 5, 4), rand(2, 1, 5, 3), scale=1.0)
    check("attention", *(x.astype("f2") for x in (Q, K, V)), scale=1.0)
    check("attention", rand(3, 4), rand(0, 4), rand(0, 2), scale=1.0)


@pytest.mark.parametrize(
    "arrays",
    [
        (Q, K),
        (Q, V, V),
        (Q, K, K[:, :3]),
        (Q, K, V, rand(4, 5)),
        (Q, K, V, rand(1, 1, 1, 1)),
    ],
)
def test_refusals(arrays: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(ValueError, match=r"attention|broadcast"):
        make_op("attention", list(arrays), {"scale": 1.0}, False)


def test_letters_name_axes_in_any_order() -> None:
    q, k, v = rand(2, 3, 5, 4), rand(2, 6, 5, 4), rand(2, 6, 5, 7)
    (got,) = check("attention", q, k, v, scale=0.5, spec="ambk,anbk,anbe->ambe")
    moved = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    (want,) = check("attention", *moved, scale=0.5)
    np.testing.assert_allclose(got, want.transpose(0, 2, 1, 3), rtol=1e-6)


def test_letters_of_masks_and_shared_keys() -> None:
    q, k, v = rand(2, 3, 5, 4), rand(2, 6, 4), rand(2, 6, 7)
    for mask in (rand(3, 6), rand(1, 6)):
        check("attention", q, k, v, mask, scale=1.0, spec="ambk,ank,ane,mn->ambe")
    turned = rand(2, 1, 6, 3) > 0
    check("attention", q, k, v, turned, scale=1.0, fill=-1e9, spec="ambk,ank,ane,abnm->ambe")


@pytest.mark.parametrize(
    "spec", ["mk,nk,ne->mm", "mk,nk,ne->me->me", "mk,nk,ke->me", "mk,nk,ne->ne", "mkk,nk,ne->me"]
)
def test_letters_that_are_no_attention(spec: str) -> None:
    with pytest.raises(ValueError, match="attention"):
        make_op(
            "attention", [rand(3, 4), rand(5, 4), rand(5, 2)], {"scale": 1.0, "spec": spec}, False
        )
