"""Branches that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuvil.ir.build import Builder
from cuvil.ir.names import Block, Operation, Region, Value
from cuvil.ir.record import tensor_type
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import number


def _if(b: Builder, condition: Value, *branches: Any) -> Value:
    """An if of which every branch makes one value."""
    regions, types = [], []
    for branch in branches:
        block = Block()
        inner = Builder(block, b.pool)
        value = branch(inner)
        inner.yield_(value)
        regions.append(Region(block))
        types = [tensor_type(value)]
    return b.emit_regions("if", [condition], types, regions)[0]


@rule(
    "if",
    example=case(
        lambda b, x: _if(b, b.const(True), lambda i: i.neg(x), lambda i: i.abs(x)), x="[B] f32"
    ),
    near_miss=case(
        lambda b, c, x: _if(b, c, lambda i: i.neg(x), lambda i: i.abs(x)), c="[] bool", x="[B] f32"
    ),
)
def known_branch(b: Rewriter, op: Operation) -> Sequence[Value] | None:
    """An if whose condition is a constant is the branch that it takes."""
    value = number(op.operands[0])
    if not isinstance(value, bool):
        return None
    return b.inline(op.regions[0 if value else 1], ())
