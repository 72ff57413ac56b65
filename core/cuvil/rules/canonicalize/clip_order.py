"""Clips between two numbers."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import number


@rule(
    "max",
    example=case(
        lambda b, x: b.max(b.min(x, b.scalar(6, x)), b.scalar(0, x)), x="[B, 9] f32"
    ),
    near_miss=[
        case(lambda b, x: b.max(b.min(x, b.scalar(0, x)), b.scalar(6, x)), x="[B, 9] f32"),
        case(lambda b, x: b.min(b.max(x, b.scalar(0, x)), b.scalar(6, x)), x="[B, 9] f32"),
    ],
)  # fmt: skip
def clip_order(b: Rewriter, op: Operation) -> Value | None:
    """max(min(x, high), low) with low <= high is min(max(x, low), high): patterns meet one form."""
    inner = b.producer(op.operands[0], "min")
    if inner is None:
        return None
    low, high = number(op.operands[1]), number(inner.operands[1])
    if low is None or high is None or not low <= high:
        return None
    result: Value = b.min(b.max(inner.operands[0], op.operands[1]), inner.operands[1])
    return result
