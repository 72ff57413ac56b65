"""What follows a product is scaled down to codes by a multiplication."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, is_constant, name_of, owner

_DEEP = 12  # ops between a product and its codes: bias, activation, residual and their casts
_BETWEEN = frozenset({"add", "sub", "mul", "cast", "max", "min", "relu", "clip", "reshape"})
_PRODUCTS = frozenset({"conv", "contract"})
_W = np.arange(12, dtype=np.float32).reshape(4, 3) / 4


@rule(
    "quantize_linear",
    example=case(
        lambda b, x: b.quantize_linear(
            b.contract(x, b.const(_W), spec="ab,bc->ac"), b.scalar(0.3, "f32"), b.scalar(3, "u8"),
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
    """round(x / s) after a sum of products, itself rounded, is round(x * (1 / s)).

    A code may differ by one where x / s lies within a rounding error of a half.
    """
    x, scale, *zero = op.operands
    known = b.array(scale) if is_constant(scale) else None
    if known is None or attrs_of(op).to not in ("u8", "i8") or known.dtype != np.float32:
        return None
    if (known == 1).all() or not _of_a_product(x, _DEEP):
        return None
    with np.errstate(all="ignore"):
        factor = (np.float32(1) / known).astype(np.float32)
    if not (np.isfinite(factor).all() and (np.abs(factor) >= np.finfo(np.float32).tiny).all()):
        return None
    return b.like(op, [b.mul(x, b.const(factor)), b.scalar(1, "f32"), *zero])


def _of_a_product(value: Value, deep: int) -> bool:
    op = owner(value)
    if op is None or not deep:
        return False
    if name_of(op) in _PRODUCTS:
        return True
    return name_of(op) in _BETWEEN and any(_of_a_product(v, deep - 1) for v in op.operands)
