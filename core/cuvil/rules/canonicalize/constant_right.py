"""One side for constants."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.scalars import SCALARS
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import is_constant, name_of

_FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_ROOTS = [n for n, row in SCALARS.items() if row.arity == 2 and row.commutative]


@rule(
    *_ROOTS, *_FLIPPED,
    example=[
        case(lambda b, x: b.add(b.scalar(2, x), x), x="[B] f32"),
        case(lambda b, x: b.lt(b.scalar(2, x), x), x="[B] f32"),
    ],
    near_miss=case(lambda b, x: b.sub(b.scalar(2, x), x), x="[B] f32"),
)  # fmt: skip
def constant_right(b: Rewriter, op: Operation) -> Value | None:
    """A constant first operand becomes the second one."""
    x, y = op.operands
    if not is_constant(x) or is_constant(y):
        return None
    result: Value = b.emit(_FLIPPED.get(name_of(op), name_of(op)), [y, x])
    return result
