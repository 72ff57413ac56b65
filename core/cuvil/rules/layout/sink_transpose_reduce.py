"""Transposes before reductions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of
from cuvil.rules.layout._sink import transposed


@rule(
    "reduce",
    example=[
        case(
            lambda b, x: b.reduce(b.transpose(x, perm=(0, 3, 1, 2)), kind="mean", axes=(2, 3)),
            x="[B, 3, 5, 2] f32",
        ),
        case(
            lambda b, x: b.reduce(
                b.transpose(x, perm=(2, 0, 1)), kind="max", axes=(1,), keepdims=True
            ),
            x="[B, 3, 5] f32",
        ),
    ],
    near_miss=case(lambda b, x: b.reduce(x, kind="max", axes=(1,)), x="[B, 3, 5] f32"),
    tolerance=1e-6,
)
def sink_transpose_reduce(b: Rewriter, op: Operation) -> Value | None:
    """A reduction is done before a transpose; the axes that are left are then transposed."""
    found, a = transposed(b, op.operands[0]), attrs_of(op)
    if found is None:
        return None
    x, perm = found
    axes = sorted(perm[i] for i in a.axes)
    result = b.reduce(x, kind=a.kind, axes=axes, keepdims=a.keepdims)
    if a.keepdims:
        return b.transpose(result, perm=perm)
    left = [i for i in range(len(perm)) if i not in axes]
    order = [left.index(p) for p in perm if p not in axes]
    return b.transpose(result, perm=order)
