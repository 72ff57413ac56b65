"""Reductions over nothing, of reductions, and around reshapes."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, name_of, one_user


@rule(
    "reduce", "reshape",
    example=[
        case(lambda b, x: b.reduce(x, kind="max", axes=(0,)), x="[1, B] f32"),
        case(
            lambda b, x: b.reshape(b.reduce(x, kind="mean", axes=(1,)), dims=(3, 1, 2)),
            x="[3, 4, 2] f32",
        ),
        case(
            lambda b, x: b.reduce(b.reduce(x, kind="max", axes=(1,)), kind="max", axes=(1,)),
            x="[3, 4, 2] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.reshape(b.reduce(x, kind="mean", axes=(1,)), dims=(1, 3, 2)),
            x="[3, 4, 2] f32",
        ),
        case(
            lambda b, x: b.reduce(b.reduce(x, kind="sum", axes=(1,)), kind="max", axes=(1,)),
            x="[3, 4, 2] f32",
        ),
    ],
)  # fmt: skip
def reduce_forms(b: Rewriter, op: Operation) -> Value | None:
    """Axes of 1 are left out; two reductions of a kind are one; the dims of 1 that a reshape puts
    back are kept in the first place."""
    if name_of(op) == "reshape":
        return _kept_dims(b, op)
    a, x = attrs_of(op), op.operands[0]
    axes = [i for i in a.axes if dims_of(x)[i] != 1]
    result: Value | None = None
    if len(axes) < len(a.axes):
        result = b.reduce(x, kind=a.kind, axes=axes, keepdims=True) if axes else x
        return b.reshape(result, dims=dims_of(op.results[0]))
    inner = b.producer(x, "reduce")
    if inner is not None and attrs_of(inner).kind == a.kind and one_user(x) is op:
        result = _both(b, op, inner)
    return result


def _both(b: Rewriter, op: Operation, inner: Operation) -> Value:
    a, first = attrs_of(op), attrs_of(inner)
    rank = len(dims_of(inner.operands[0]))
    kept = [i for i in range(rank) if first.keepdims or i not in first.axes]
    axes = sorted({*first.axes, *(kept[i] for i in a.axes)})
    total: Value = b.reduce(inner.operands[0], kind=a.kind, axes=axes, keepdims=True)
    result: Value = b.reshape(total, dims=dims_of(op.results[0]))
    return result


def _kept_dims(b: Rewriter, op: Operation) -> Value | None:
    """reshape(reduce(x)) with the reduced axes put back as 1."""
    inner = b.producer(op.operands[0], "reduce")
    if inner is None or attrs_of(inner).keepdims or one_user(op.operands[0]) is not op:
        return None
    a, x = attrs_of(inner), inner.operands[0]
    want = tuple(1 if i in a.axes else d for i, d in enumerate(dims_of(x)))
    if dims_of(op.results[0]) != want:
        return None
    result: Value = b.reduce(x, kind=a.kind, axes=a.axes, keepdims=True)
    return result
