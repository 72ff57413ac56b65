"""Transposes before element-wise ops."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import dims_of, rank_of
from cuvil.rules.layout._sink import before, perms_of


@rule(
    "#pointwise",
    example=[
        case(
            lambda b, x, y: b.add(b.transpose(x, perm=(0, 2, 1)), b.transpose(y, perm=(0, 2, 1))),
            x="[B, 3, 5] f32", y="[B, 3, 5] f32",
        ),
        case(
            lambda b, x: b.mul(b.transpose(x, perm=(0, 2, 1)), b.const(sample(17, 1))),
            x="[B, 3, 17] f32",
        ),
        case(
            lambda b, x, s: b.mul(b.transpose(x, perm=(0, 3, 1, 2)), s),
            x="[B, 3, 2, 5] f32", s="[B, 5, 1, 1] f32",
        ),
    ],
    near_miss=case(
        lambda b, x, y: b.add(b.transpose(x, perm=(0, 2, 1)), y),
        x="[B, 3, 5] f32", y="[B, 5, 3] f32",
    ),
)  # fmt: skip
def sink_transpose_pointwise(b: Rewriter, op: Operation) -> Value | None:
    """An element-wise op on operands transposed alike, constants among them, is done before."""
    dims = dims_of(op.results[0])
    for perm in perms_of(b, op, len(dims)):
        operands = [before(b, v, perm) for v in op.operands]
        known = [v for v in operands if v is not None]
        if len(known) < len(operands):
            continue
        result: Value = b.like(op, known)
        if rank_of(result) == len(dims) and permuted(dims_of(result), perm) == dims:
            return b.transpose(result, perm=perm)
    return None
