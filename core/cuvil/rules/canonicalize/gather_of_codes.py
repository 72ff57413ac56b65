"""Rows of a table that stands as codes."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import rank_of


@rule(
    "gather",
    example=case(
        lambda b, x, i: b.gather(b.dequantize_linear(x, b.scalar(0.5, "f32")), i, axis=0),
        x="[40, 8] u8", i="[3] i64",
    ),
    near_miss=case(
        lambda b, x, s, i: b.gather(b.dequantize_linear(x, s), i, axis=0),
        x="[40, 8] u8", s="[40, 1] f32", i="[3] i64",
    ),
)  # fmt: skip
def gather_of_codes(b: Rewriter, op: Operation) -> Value | None:
    """The chosen codes become numbers, not all of them."""
    inner = b.producer(op.operands[0], "dequantize_linear")
    if inner is None or any(rank_of(v) for v in inner.operands[1:]):
        return None
    chosen = b.like(op, [inner.operands[0], *op.operands[1:]])
    result: Value = b.dequantize_linear(chosen, *inner.operands[1:])
    return result
