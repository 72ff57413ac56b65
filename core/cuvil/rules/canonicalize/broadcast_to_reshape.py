"""Broadcasts that repeat nothing."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dims_of


@rule(
    "broadcast",
    example=case(lambda b, x: b.broadcast(x, dims=(1, 1, *b.dims_of(x))), x="[B, 3] f32"),
    near_miss=case(lambda b, x: b.broadcast(x, dims=(2, *b.dims_of(x))), x="[B, 3] f32"),
)
def broadcast_to_reshape(b: Rewriter, op: Operation) -> Value | None:
    """A broadcast that only adds leading dims of 1 is a reshape."""
    have, want = dims_of(op.operands[0]), dims_of(op.results[0])
    if want == have or want != (*[1] * (len(want) - len(have)), *have):
        return None
    result: Value = b.reshape(op.operands[0], dims=want)
    return result
