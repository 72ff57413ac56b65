"""Tables that are looked up, such as embeddings, in float16, where a person asked for that."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rules.precision._fp16 import as_halves


def _rows(b: Rewriter, table: object, x: Value) -> Value:
    """x + three rows of a constant table."""
    return b.add(x, b.gather(b.const(table), b.const([3, 0, 39]), axis=0))


@rule(
    "gather",
    example=case(lambda b, x: _rows(b, sample(40, 33), x), x="[3, 33] f32"),
    near_miss=[
        case(lambda b, x: _rows(b, sample(40, 3), x), x="[3, 3] f32"),
        case(lambda b, x: _rows(b, np.full((40, 33), 1e5, np.float32), x), x="[3, 33] f32"),
    ],
    on=False,
    tolerance=2.5e-3,
)
def fp16_gather(b: Rewriter, op: Operation) -> Value | None:
    """Rows of a constant table."""
    halves = as_halves(b, op.operands[0])
    if halves is None:
        return None
    result: Value = b.cast(b.like(op, [halves, *op.operands[1:]]), to="f32")
    return result
