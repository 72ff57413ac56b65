"""Views: transpose, reshape, slice, broadcast, pad, concat, iota and tensors of dims."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, make_op, meaning, rand

from cuvil.errors import RuntimeFailure
from cuvil.ir.dims import symbol
from cuvil.ops.interpreter import evaluate_op

FILL = np.float32(7)


def test_transpose_and_reshape() -> None:
    check("transpose", rand(2, 3, 4), perm=(2, 0, 1))
    check("transpose", rand(), perm=())
    check("reshape", rand(2, 3, 4), dims=(6, 4))
    check("reshape", rand(2, 3, 4), dims=(3, 2, 2, 2))
    check("reshape", rand(1, 1), dims=())
    check("reshape", rand(2, 0), dims=(0, 5))


def test_slice() -> None:
    x = np.arange(10, dtype="f4")
    for start, step, count in ((9, -1, 9), (9, -3, 3), (2, 2, 4), (4, 1, 0)):
        (got,) = check("slice", x, starts=(start,), steps=(step,), dims=(count,))
        assert got.tolist() == [start + step * i for i in range(count)]
    check("slice", rand(3, 4), starts=(1, 3), steps=(1, -1), dims=(2, 4))


def test_refusals() -> None:
    for name, attrs in (
        ("slice", {"starts": (2,), "steps": (1,), "dims": (2,)}),
        ("slice", {"starts": (0,), "steps": (-1,), "dims": (2,)}),
        ("slice", {"starts": (0,), "steps": (1,), "dims": (-1,)}),
        ("broadcast", {"dims": (2,)}),
        ("broadcast", {"dims": ()}),
        ("transpose", {"perm": (1,)}),
        ("reshape", {"dims": (2,)}),
    ):
        with pytest.raises(ValueError, match=r"slice|broadcast|permutation|reshape"):
            make_op(name, [rand(3)], attrs, False)


def test_broadcast_iota_dims() -> None:
    check("dims", dims=(), shape=(0,))
    check("broadcast", rand(3, 1), dims=(2, 3, 4))
    check("iota", dims=(2, 3), axis=1)
    check("iota", dims=(3,), dtype="f32")
    (got,) = check("dims", dims=(4, 5, 6), shape=(3,))
    assert got.tolist() == [4, 5, 6]


def test_constant_pad() -> None:
    x = np.arange(5, dtype="f4")
    assert check("pad", x, FILL, low=(-4,), high=(4,))[0].tolist() == [4, 7, 7, 7, 7]
    assert check("pad", x, FILL, low=(-7,), high=(7,))[0].tolist() == [7] * 5
    assert check("pad", x, FILL, low=(-1,), high=(-2,))[0].tolist() == [1, 2]
    check("pad", rand(2, 3), FILL, low=(1, 0), high=(0, 2))
    check("pad", rand(2, 0), FILL, low=(0, 1), high=(0, 2))


def test_reflect_by_hand() -> None:
    x = np.float32([[1, 1.2], [2.3, 3.4], [4.5, 5.7]])
    (got,) = check("pad", x, FILL, low=(0, 2), high=(0, 0), mode="reflect")
    np.testing.assert_array_equal(got[0], np.float32([1, 1.2, 1, 1.2]))
    (got,) = check("pad", np.arange(3, dtype="f4"), FILL, low=(4,), high=(4,), mode="reflect")
    assert got.tolist() == [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("pads", [(4, 4), (1, 0), (0, 9), (2, 2)])
def test_repeating_modes_are_numpys(mode: str, size: int, pads: tuple[int, int]) -> None:
    x = rand(size)
    (got,) = check("pad", x, FILL, low=pads[:1], high=pads[1:], mode=mode)
    np.testing.assert_array_equal(got, np.pad(x, [pads], mode=mode))


def test_repeating_modes_crop_first() -> None:
    x = np.arange(5, dtype="f4")
    for mode, want in (("edge", [2, 3, 4, 4, 4]), ("wrap", [2, 3, 4, 2, 3])):
        assert check("pad", x, FILL, low=(-2,), high=(2,), mode=mode)[0].tolist() == want
    assert meaning("pad", x, FILL, low=(-3,), high=(1,), mode="reflect")[0].tolist() == [3, 4, 3]
    with pytest.raises(ValueError, match="leave nothing"):
        make_op("pad", [x, FILL], {"low": (-5,), "high": (6,), "mode": "edge"}, False)
    with pytest.raises(ValueError, match="crop more"):
        make_op("pad", [x, FILL], {"low": (-3,), "high": (-3,)}, False)


def test_concat() -> None:
    check("concat", rand(2, 3), rand(2, 1), rand(2, 4), axis=1)
    check("concat", rand(2, 3), rand(1, 3), axis=0)
    check("concat", rand(0, 3), rand(2, 3), axis=0)
    with pytest.raises(ValueError, match="concat"):
        make_op("concat", [rand(2, 3), rand(3, 3)], {"axis": 1}, False)


def test_symbolic_dims_of_views() -> None:
    n = symbol("n3")
    x = rand(3, 2)
    low = make_op("pad", [x, FILL], {"low": (n, 0), "high": (1 - n, 0)}, True)
    assert str(low.results[0].type) == "!cuvil.tensor<[n3 + 1, n2], f32>"
    both = make_op("concat", [x, x], {"axis": 0}, True)
    assert both.results[0].type.dims[0] == 2 * n


def test_a_slice_takes_no_elements_from_the_other_end() -> None:
    """Extents that only a run knows: numpy's -1 would be the last one."""
    op = make_op(
        "slice", [rand(4)], {"starts": (-1,), "steps": (1,), "dims": (symbol("n4"),)}, True
    )
    with pytest.raises(RuntimeFailure, match="elements -1 to 2 of axis 0 of 4"):
        evaluate_op(op, [rand(4)], {"n4": 4})
