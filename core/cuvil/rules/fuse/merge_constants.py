"""Constants added one after the other."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import dims_of, is_constant, one_user


@rule(
    "add",
    example=case(
        lambda b, x: b.add(b.add(x, b.const(sample(20))), b.const(sample(20, seed=1))),
        x="[B, 20] f32",
    ),
    near_miss=case(
        lambda b, x, y: b.add(b.add(x, y), b.const(sample(20))), x="[B, 20] f32", y="[20] f32"
    ),
    tolerance=1e-6,
)
def merge_constants(b: Rewriter, op: Operation) -> Value | None:
    """(x + c) + d is x + (c + d)."""
    value, last = op.operands
    inner = b.producer(value, "add")
    if inner is None or one_user(value) is not op or not is_constant(last):
        return None
    x, first = inner.operands
    if not is_constant(first) or dims_of(x) != dims_of(op.results[0]):
        return None
    result: Value = b.add(x, b.add(first, last))
    return result
