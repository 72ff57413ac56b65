"""Reciprocals by their own name."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dtype_of, name_of, number, one_user, tensor_type


@rule(
    "div", "reciprocal",
    example=[
        case(lambda b, x: b.div(b.scalar(1, x), x), x="[B] f32"),
        case(lambda b, x: b.reciprocal(b.sqrt(x)), x="[B] f32"),
    ],
    near_miss=[
        case(lambda b, x: b.div(b.scalar(1, x), x), x="[B] i32"),
        case(lambda b, x: b.reciprocal(b.exp(x)), x="[B] f32"),
    ],
    tolerance=1e-6,
)  # fmt: skip
def reciprocal_forms(b: Rewriter, op: Operation) -> Value | None:
    """1 / x is reciprocal(x); the reciprocal of a root is rsqrt."""
    result: Value | None = None
    x = op.operands[-1]
    if name_of(op) == "reciprocal":
        root = b.producer(x, "sqrt")
        if root is not None and one_user(x) is op:
            result = b.rsqrt(root.operands[0])
    elif _is_one(op.operands[0]) and tensor_type(x) == tensor_type(op.results[0]):
        result = b.reciprocal(x)
    return result


def _is_one(value: Value) -> bool:
    return dtype_of(value).is_float and number(value) == 1
