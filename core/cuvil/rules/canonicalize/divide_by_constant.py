"""Divisions that are multiplications."""

from __future__ import annotations

import math

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dtype_of, number

_LARGEST = {"f16": 14, "bf16": 125, "f32": 125, "f64": 1021}  # 2 ** -n is a normal number


@rule(
    "div",
    example=case(lambda b, x: b.div(x, b.scalar(8, x)), x="[B] f32"),
    near_miss=[
        case(lambda b, x: b.div(x, b.scalar(3, x)), x="[B] f32"),  # 1/3 is rounded
        case(lambda b, x: b.div(x, b.scalar(8, x)), x="[B] i32"),
    ],
)
def divide_by_constant(b: Rewriter, op: Operation) -> Value | None:
    """x / 2**n is x * 2**-n, exactly."""
    x, c = op.operands
    value = number(c)
    if not isinstance(value, float) or value == 0 or not math.isfinite(value):
        return None
    fraction, exponent = math.frexp(abs(value))
    if fraction != 0.5 or abs(exponent - 1) > _LARGEST[dtype_of(x).name]:
        return None
    result: Value = b.mul(x, b.reciprocal(c))
    return result
