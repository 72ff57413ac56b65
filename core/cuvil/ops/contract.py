"""Contraction of two tensors: matrix products, batched or not, in einsum's notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim
from cuvil.ir.dtypes import DType, dtype, from_numpy
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType
from cuvil.ops.lowering import ElementCx, loops, wide


class Spec(NamedTuple):
    """The letters of a contraction: `a,b->out`."""

    a: str
    b: str
    out: str

    @property
    def batch(self) -> str:
        """Letters of both operands and the result, in the result's order."""
        return "".join(c for c in self.out if c in self.a and c in self.b)

    @property
    def rows(self) -> str:
        """Letters of the first operand and the result only."""
        return "".join(c for c in self.out if c in self.a and c not in self.b)

    @property
    def columns(self) -> str:
        """Letters of the second operand and the result only."""
        return "".join(c for c in self.out if c in self.b and c not in self.a)

    @property
    def summed(self) -> str:
        """Letters of both operands that the result lacks, in the first operand's order."""
        return "".join(c for c in self.a if c in self.b and c not in self.out)


def parse(spec: str) -> Spec:
    """Reads `bmk,bkn->bmn`.

    ValueError unless every letter of an operand stands in the result or in both operands, and
    none stands twice in one place.
    """
    operands, arrow, out = spec.partition("->")
    a, comma, b = operands.partition(",")
    letters = a + b + out
    if not arrow or not comma or not (letters.isalpha() or not letters):
        raise ValueError(f"'{spec}' is not of the form 'bmk,bkn->bmn'")
    for part in (a, b, out):
        if len(set(part)) != len(part):
            raise ValueError(f"'{spec}': a letter stands twice in '{part}'")
    if not set(out) <= set(a + b) or not set(a) ^ set(b) <= set(out):
        raise ValueError(f"'{spec}': a letter of only one operand must be in the result")
    return Spec(a, b, out)


def extents(spec: Spec, t: Sequence[TensorType]) -> dict[str, Dim]:
    """The extent of every letter; ValueError where operands disagree or ranks do not fit."""
    found: dict[str, Dim] = {}
    for letters, kind in zip((spec.a, spec.b), t, strict=True):
        if len(letters) != kind.rank:
            raise ValueError(f"contract: '{letters}' does not fit rank {kind.rank}")
        for letter, dim in zip(letters, kind.dims, strict=True):
            known = found.setdefault(letter, dim)
            if isinstance(known, int) and isinstance(dim, int) and known != dim:
                raise ValueError(f"contract: '{letter}' is {known} and {dim}")
            if isinstance(dim, int):
                found[letter] = dim
    return found


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    spec = parse(a.spec)
    if not factors_fit(t[0].dtype, t[1].dtype, a):
        raise ValueError(f"contract: {t[0].dtype.name} with {t[1].dtype.name}")
    found = extents(spec, t)
    return [TensorType.of([found[c] for c in spec.out], sum_dtype(t[0].dtype, a))]


_BYTES = ("i8", "u8")


def factors_fit(x: DType, y: DType, a: Attrs) -> bool:
    """Whether factors of these dtypes can be multiplied: equal ones, bytes that sum in i32, or
    halves that are kept as such with floats that they are multiplied by."""
    if a.accumulate == "i32" and x.name in _BYTES and y.name in _BYTES:
        return True
    if a.accumulate == "f32" and {x.name, y.name} == {"f16", "f32"}:
        return True
    return x == y and x.kind != "bool"


def sum_dtype(operands: DType, a: Attrs) -> DType:
    """The dtype of sums of products: the operands' own, or what `accumulate` says. ValueError
    where that is neither."""
    if a.accumulate == "i32" and operands.name in _BYTES:
        return dtype("i32")
    if a.accumulate not in ("", operands.compute.name):
        raise ValueError(f"sums of {operands.name} cannot be {a.accumulate}")
    return operands.compute if a.accumulate else operands


def factors(x: Sequence[Any], a: Attrs) -> list[Any]:
    """Arrays in the dtype in which the reference multiplies and adds."""
    return [v.astype(np.int32) if a.accumulate == "i32" else wide(v) for v in x]


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    spec = parse(a.spec)
    left, right = factors(x, a)
    size = {**dict(zip(spec.a, left.shape, strict=True))}
    size |= dict(zip(spec.b, right.shape, strict=True))

    def matrix(array: Any, letters: str, *groups: str) -> Any:
        moved = array.transpose([letters.index(c) for c in "".join(groups)])
        shape = [int(np.prod([size[c] for c in g], dtype=np.int64)) for g in groups[1:]]
        return moved.reshape([*(size[c] for c in groups[0]), *shape])

    product = np.matmul(
        matrix(left, spec.a, spec.batch, spec.rows, spec.summed),
        matrix(right, spec.b, spec.batch, spec.summed, spec.columns),
    )
    order = spec.batch + spec.rows + spec.columns
    product = product.reshape([size[c] for c in order])
    return [product.transpose([order.index(c) for c in spec.out]).astype(_numpy(x[0].dtype, a))]


def _numpy(operands: Any, a: Attrs) -> Any:
    return sum_dtype(from_numpy(operands), a).numpy


def _element(cx: ElementCx, index: Sequence[Index]) -> Value:
    """One dot product; fast code comes from the planner's template instead."""
    b, spec = cx.b, parse(cx.attrs.spec)
    sizes = extents(spec, cx.operand_types)
    at = dict(zip(spec.out, index, strict=True))
    acc = cx.result_type.dtype.compute.name

    def step(inner: tuple[Index, ...], total: Value) -> Sequence[Value]:
        place = at | dict(zip(spec.summed, inner, strict=True))
        x, y = (
            b.cast(cx.operand(i, [place[c] for c in letters]), acc)
            for i, letters in enumerate((spec.a, spec.b))
        )
        return [b.scalar("add", total, b.scalar("mul", x, y))]

    (total,) = loops(b, [sizes[c] for c in spec.summed], [b.const(0, acc)], step)
    return b.cast(total, cx.result_type.dtype.name)


CONTRACT = Primitive(
    name="contract",  # f16 and bf16 sum in f32, the result where accumulate says so; integers wrap
    infer=_infer,
    evaluate=_evaluate,
    attrs={"spec": Attr("str"), "accumulate": Attr("str", "")},
    element=_element,
    tags=frozenset({"anchor", "contraction"}),
    tolerance=1e-4,
    computes=True,
).register()
