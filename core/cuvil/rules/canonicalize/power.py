"""Powers with a small constant exponent."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.facts import nonnegative
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dtype_of, number, tensor_type


@rule(
    "pow",
    example=[
        case(lambda b, x: b.pow(x, b.scalar(2, x)), x="[B] f32"),
        case(lambda b, x: b.pow(x, b.scalar(3, x)), x="[B] f32"),
        case(lambda b, x: b.pow(b.abs(x), b.scalar(0.5, x)), x="[B] f32"),
        case(lambda b, x: b.pow(b.abs(x), b.scalar(-0.5, x)), x="[B] f32"),
    ],
    near_miss=[
        case(lambda b, x: b.pow(x, b.scalar(0.5, x)), x="[B] f32"),  # (-inf)**0.5 is inf
        case(lambda b, x: b.pow(x, b.scalar(2.5, x)), x="[B] f32"),
        case(lambda b, x: b.pow(x, b.scalar(3, x)), x="[B] bf16"),
    ],
    tolerance=1e-6,
)
def power(b: Rewriter, op: Operation) -> Value | None:
    """x**2 and x**3 are products, x**-1 a reciprocal, x**0.5 a root where x cannot be negative."""
    x, exponent = op.operands
    value = number(exponent)
    if value is None or tensor_type(x) != tensor_type(op.results[0]):
        return None
    result: Value | None = None
    if value == 3 and dtype_of(x).is_float and dtype_of(x).size < 4:
        return None  # one rounding is better than two
    if value in (2, 3):
        square = b.mul(x, x)
        result = square if value == 2 else b.mul(square, x)
    elif value == -1 and dtype_of(x).is_float:
        result = b.reciprocal(x)
    elif value in (0.5, -0.5) and nonnegative(x):
        result = b.sqrt(x) if value > 0 else b.rsqrt(x)
    return result
