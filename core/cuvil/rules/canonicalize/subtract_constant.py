"""Differences with a constant."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dtype_of, is_constant


@rule(
    "sub",
    example=case(lambda b, x: b.sub(x, b.scalar(3, x)), x="[B] f32"),
    near_miss=case(lambda b, x: b.sub(x, b.scalar(3, x)), x="[B] u8"),
)
def subtract_constant(b: Rewriter, op: Operation) -> Value | None:
    """x - c is x + (-c), exactly: patterns meet one form."""
    x, c = op.operands
    if not is_constant(c) or is_constant(x) or not dtype_of(c).is_signed:
        return None
    result: Value = b.add(x, b.neg(c))
    return result
