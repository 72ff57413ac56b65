"""Element-wise primitives: one per row of the scalar table, with numpy's broadcasting."""

from __future__ import annotations

import numpy as np
import pytest
from op_check import check, make_op, rand

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import symbol
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.types import TensorType
from cuvil.ops.elementwise import broadcast_dims
from cuvil.ops.scalars import SCALARS

ATTRS = {"cast": {"to": "i32"}, "cast_narrow": {"to": "f8e5m2"},
         "quantize": {"to": "u8"}, "fake_quantize": {"to": "u8"}}  # fmt: skip
UNSIGNED = {"f32": "u32", "i64": "u64", "bool": "u8"}


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_every_row_is_a_primitive(name: str) -> None:
    row = SCALARS[name]
    for dtype in ("f32", "i64", "bool"):
        if row.supports(dtype):
            kinds = [t.numpy for t in row.operand_dtypes(dtype)]
            arrays = [rand(2, 3, dtype=k, seed=i) for i, k in enumerate(kinds)]
            attrs = ATTRS.get(name, {})
            if name == "bitcast":
                attrs = {"of": dtype, "to": UNSIGNED[dtype]}
            with np.errstate(all="ignore"):
                check(name, *arrays, **attrs)


def test_broadcasting() -> None:
    check("add", rand(2, 1, 3), rand(4, 1))
    check("select", rand(3, dtype="bool"), rand(2, 1), rand(1))
    check("mul", rand(), rand(2))


def test_attributes() -> None:
    check("leaky_relu", rand(7), alpha=0.5)
    check("cast", rand(7), to="f16")


def test_symbolic_result() -> None:
    n, m = symbol("N"), symbol("M")
    assert broadcast_dims((n, 1), (m,)) == (n, m)
    kinds = [TensorType.of((n, 1), "f32"), TensorType.of((3,), "f32")]
    (got,) = PRIMITIVES["add"].infer(kinds, Attrs())
    assert got.dims == (n, 3)


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("add", [rand(2), rand(3)]),
        ("add", [rand(2), rand(2, dtype="f8")]),
        ("sqrt", [rand(2, dtype="i4")]),
        ("select", [rand(2), rand(2), rand(2)]),
        ("add", [rand(2)]),
    ],
)
def test_refusals(name: str, arrays: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"take|broadcast"):
        make_op(name, arrays, {}, False)
