"""Selections whose outcome is known."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import number, tensor_type


@rule(
    "select",
    example=[
        case(lambda b, x, y: b.select(b.scalar(True, "bool"), x, y), x="[B] f32", y="[B] f32"),
        case(lambda b, c, x: b.select(c, x, x), c="[B] bool", x="[B] f32"),
        case(lambda b, c, x, y: b.select(b.not_(c), x, y), c="[B] bool", x="[B] f32", y="[B] f32"),
    ],
    near_miss=case(
        lambda b, x, y: b.select(b.scalar(True, "bool"), x, y), x="[1] f32", y="[B] f32"
    ),
)
def chosen(b: Rewriter, op: Operation) -> Value | None:
    """A constant condition, equal branches, or a negated condition."""
    condition, x, y = op.operands
    value = number(condition)
    picked = x if x is y or value is True else y if value is False else None
    if picked is not None:
        return picked if tensor_type(picked) == tensor_type(op.results[0]) else None
    negated = b.producer(condition, "not")
    result: Value | None = None if negated is None else b.select(negated.operands[0], y, x)
    return result
