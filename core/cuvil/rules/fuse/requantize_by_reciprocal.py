"""What was computed is scaled down to codes by a multiplication."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, is_constant, name_of, owner

_MOVERS = frozenset({"reshape", "transpose", "slice", "concat", "pad", "broadcast", "gather"})
_W = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
_S = 0.3141  # no sum of sixteenths is near half a code of this scale: both ways agree to the bit


@rule(
    "quantize_linear",
    example=case(
        lambda b, x: b.quantize_linear(
            b.contract(x, b.const(_W), spec="ab,bc->ac"), b.scalar(_S, "f32"), b.scalar(3, "u8"),
            to="u8",
        ),
        x="[B, 4] f32",
    ),
    near_miss=[
        case(  # codes of what a caller gave are as the division says
            lambda b, x: b.quantize_linear(x, b.scalar(0.3, "f32"), b.scalar(3, "u8"), to="u8"),
            x="[B, 4] f32",
        ),
        case(
            lambda b, x, s: b.quantize_linear(b.contract(x, b.const(_W), spec="ab,bc->ac"), s,
                                              b.scalar(3, "u8"), to="u8"),
            x="[B, 4] f32", s="[] f32",
        ),
    ],
)  # fmt: skip
def requantize_by_reciprocal(b: Rewriter, op: Operation) -> Value | None:
    """round(x / s) of what arithmetic gave, itself rounded, is round(x * (1 / s)).

    A division takes a vector unit ten times as long. A code may differ by one where x / s lies
    within a rounding error of a half.
    """
    x, scale, *zero = op.operands
    known = b.array(scale) if is_constant(scale) else None
    if known is None or attrs_of(op).to not in ("u8", "i8") or known.dtype != np.float32:
        return None
    if (known == 1).all() or not _computed(x):
        return None
    with np.errstate(all="ignore"):
        factor = (np.float32(1) / known).astype(np.float32)
    if not (np.isfinite(factor).all() and (np.abs(factor) >= np.finfo(np.float32).tiny).all()):
        return None
    return b.like(op, [b.mul(x, b.const(factor)), b.scalar(1, "f32"), *zero])


def _computed(value: Value) -> bool:
    """Whether arithmetic gave these numbers, and not a caller."""
    op = owner(value)
    if op is None or is_constant(value):
        return False
    if name_of(op) in _MOVERS:
        return all(map(_computed, op.operands))
    return True
