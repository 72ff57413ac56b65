"""Reductions: dims kept, over nothing, of reductions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, one_user


@rule(
    "reduce",
    example=[
        case(lambda b, x: b.reduce(x, kind="max", axes=(0, 1), keepdims=True), x="[1, B] f32"),
        case(lambda b, x: b.reduce(x, kind="mean", axes=(1,)), x="[3, 4, 2] f32"),
        case(
            lambda b, x: b.reduce(b.reduce(x, kind="max", axes=(1,)), kind="max", axes=(1,)),
            x="[3, 4, 2] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.reduce(b.reduce(x, kind="sum", axes=(1,), keepdims=True), kind="max",
                                  axes=(2,), keepdims=True),
            x="[3, 4, 2] f32",
        ),
        case(  # a mean of integers drops a remainder each time
            lambda b, x: b.reduce(b.reduce(x, kind="mean", axes=(1,), keepdims=True), kind="mean",
                                  axes=(2,), keepdims=True),
            x="[3, 4, 2] i32",
        ),
    ],
)  # fmt: skip
def reduce_forms(b: Rewriter, op: Operation) -> Value | None:
    """Reduced axes are kept as 1 and taken off by a reshape, which other rules move on; axes of 1
    are left out; two reductions of a kind are one."""
    a, x = attrs_of(op), op.operands[0]
    axes = [i for i in a.axes if dims_of(x)[i] != 1]
    inner = b.producer(x, "reduce")
    if inner is not None and _merges(inner, op):
        x, axes = inner.operands[0], sorted({*axes, *attrs_of(inner).axes})
    if a.keepdims and len(axes) == len(a.axes):
        return None
    result: Value = b.reduce(x, kind=a.kind, axes=axes, keepdims=True) if axes else x
    return b.same_dims(result, op.results[0])


def _merges(inner: Operation, op: Operation) -> bool:
    first, x = attrs_of(inner), op.operands[0]
    if first.kind == "mean" and not dtype_of(x).is_float:
        return False
    return first.kind == attrs_of(op).kind and first.keepdims and one_user(x) is op
