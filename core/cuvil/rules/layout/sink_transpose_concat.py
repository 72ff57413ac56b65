"""Transposes before concatenations."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, rank_of
from cuvil.rules.layout._sink import before, perms_of


@rule(
    "concat",
    example=case(
        lambda b, x, y: b.concat(
            b.transpose(x, perm=(0, 2, 1)), b.transpose(y, perm=(0, 2, 1)), axis=1
        ),
        x="[B, 3, 5] f32", y="[B, 3, 2] f32",
    ),
    near_miss=case(
        lambda b, x, y: b.concat(b.transpose(x, perm=(0, 2, 1)), y, axis=1),
        x="[B, 3, 5] f32", y="[B, 2, 3] f32",
    ),
)  # fmt: skip
def sink_transpose_concat(b: Rewriter, op: Operation) -> Value | None:
    """A concatenation of tensors transposed alike, constants among them, is done before."""
    for perm in perms_of(b, op, rank_of(op.results[0])):
        parts = [before(b, v, perm) for v in op.operands]
        known = [v for v in parts if v is not None and rank_of(v) == len(perm)]
        if len(known) == len(parts):
            result = b.concat(*known, axis=perm[attrs_of(op).axis])
            return b.transpose(result, perm=perm)
    return None
