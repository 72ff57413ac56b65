"""Functions that undo themselves."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import name_of


@rule(
    "neg", "not", "abs", "relu", "floor", "ceil", "round", "trunc",
    example=[
        case(lambda b, x: b.neg(b.neg(x)), x="[B] f32"),
        case(lambda b, x: b.not_(b.not_(x)), x="[B] bool"),
        case(lambda b, x: b.relu(b.relu(x)), x="[B] f32"),
    ],
    near_miss=case(lambda b, x: b.neg(b.abs(x)), x="[B] f32"),
)  # fmt: skip
def involution(b: Rewriter, op: Operation) -> Value | None:
    """neg and not cancel in pairs; abs, relu and roundings are the same done twice."""
    inner = b.producer(op.operands[0], name_of(op))
    if inner is None:
        return None
    return inner.operands[0] if name_of(op) in ("neg", "not") else inner.results[0]
