"""Adding nothing, multiplying by one."""

from __future__ import annotations

import math
from typing import Any

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dtype_of, name_of, number, tensor_type

_COMMUTATIVE = ("add", "mul", "min", "max", "and", "or", "xor")


@rule(
    "add", "sub", "mul", "div", "pow", "min", "max", "and", "or", "xor",
    example=[
        case(lambda b, x: b.add(x, b.scalar(-0.0, x)), x="[2, B] f32"),
        case(lambda b, x: b.mul(b.scalar(1, x), x), x="[2, B] f32"),
        case(lambda b, x: b.sub(x, b.scalar(0, x)), x="[2, B] f32"),
        case(lambda b, x: b.add(x, b.scalar(0, x)), x="[2, B] i64"),
        case(lambda b, x: b.max(x, b.scalar(-math.inf, x)), x="[2, B] f32"),
        case(lambda b, x: b.and_(x, b.scalar(True, x)), x="[B] bool"),
    ],
    near_miss=[
        case(lambda b, x: b.add(x, b.scalar(0.0, x)), x="[2, B] f32"),  # -0.0 + 0.0 is 0.0
        case(lambda b, x: b.mul(x, b.scalar(0, x)), x="[2, B] f32"),  # NaN * 0 is NaN
        case(lambda b, x: b.mul(x, b.const([[[1.0]]], "f32")), x="[2, 3] f32"),  # a rank more
    ],
)  # fmt: skip
def neutral_operand(b: Rewriter, op: Operation) -> Value | None:
    """x + (-0.0), x - 0, x * 1, x / 1, x ** 1, max(x, -inf), x and True, ...: x itself."""
    x, y = op.operands
    name = name_of(op)
    for kept, other in ((x, y), (y, x)) if name in _COMMUTATIVE else ((x, y),):
        if _neutral(name, number(other), dtype_of(other).is_float) and (
            tensor_type(kept) == tensor_type(op.results[0])
        ):
            return kept
    return None


def _neutral(name: str, value: Any, is_float: bool) -> bool:
    if value is None:
        return False
    if name in ("mul", "div", "pow"):
        return bool(value == 1)
    if name in ("min", "max"):
        return bool(value == (math.inf if name == "min" else -math.inf))
    if name == "and":
        return value is True or value == -1
    negative = math.copysign(1, value) < 0
    wanted = {"add": True, "sub": False}.get(name) if is_float else None
    return bool(value == 0) and wanted in (None, negative)
