"""What is known of values without computing them."""

from __future__ import annotations

import math

from cuvil.ir.names import Value
from cuvil.rewrite.values import attrs_of, name_of, number, owner

_ALWAYS = frozenset({"abs", "exp", "exp2", "sigmoid", "sqrt", "rsqrt", "softmax"})
_IF_ALL = frozenset(
    {"add", "mul", "max", "min", "div", "broadcast", "reshape", "transpose", "slice", "reduce"}
)


def nonnegative(value: Value, depth: int = 8) -> bool:
    """True when no element can be below zero or -0.0 (it may be NaN); False says nothing."""
    op = owner(value)
    if op is None or depth == 0:
        return False
    known, name = number(value), name_of(op)
    if known is not None:
        return bool(known >= 0 and math.copysign(1, known) > 0)
    if name in _ALWAYS:
        return True
    if name == "mul" and op.operands[0] is op.operands[1]:
        return True
    if name == "reduce" and attrs_of(op).kind in ("any", "all"):
        return False
    return name in _IF_ALL and all(nonnegative(v, depth - 1) for v in op.operands)
