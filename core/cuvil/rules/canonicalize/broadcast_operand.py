"""Broadcasts that the next op does by itself."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dims_of


@rule(
    "#pointwise",
    example=[
        case(lambda b, x, y: b.add(b.broadcast(x, dims=(4, 3)), y), x="[3] f32", y="[4, 3] f32"),
        case(lambda b, x: b.exp(b.broadcast(x, dims=(4, 3))), x="[3] f32"),
        case(lambda b, x: b.mul(b.broadcast(x, dims=(4, 3)), b.scalar(2, x)), x="[3] f32"),
    ],
    near_miss=case(
        lambda b, x: b.exp(b.reshape(b.broadcast(x, dims=(4, 3)), dims=(12,))), x="[3] f32"
    ),
)
def broadcast_operand(b: Rewriter, op: Operation) -> Value | None:
    """An element-wise op broadcasts its operands itself; what it does not, follows it."""
    sources = [b.producer(v, "broadcast") for v in op.operands]
    if not any(sources):
        return None
    plain = [v if s is None else s.operands[0] for s, v in zip(sources, op.operands, strict=True)]
    dims = dims_of(op.results[0])
    result: Value = b.like(op, plain)
    return result if dims_of(result) == dims else b.broadcast(result, dims=dims)
