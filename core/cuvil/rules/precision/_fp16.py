"""What the rules that keep weights as float16 share."""

from __future__ import annotations

from math import prod

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import dims_of, dtype_of

LEAST = 1024  # weights: fewer are not worth a loop of another kind
_GREATEST = 65504.0  # float16's


def as_halves(b: Rewriter, value: Value) -> Value | None:
    """A constant of float32 as float16; None for another value, one of few numbers, and where one
    is too large for float16 or no number."""
    known = b.pool_constant(value)
    if known is None or dtype_of(value).name != "f32":
        return None
    if prod(d for d in dims_of(value) if isinstance(d, int)) < LEAST:
        return None
    if not np.abs(b.pool.array(known.key)).max() <= _GREATEST:
        return None
    halves: Value = b.cast(value, to="f16")
    return halves


def with_halves(b: Rewriter, op: Operation, weights: int) -> Value | None:
    """The same products of float32 with constant weights that are stored as float16; None where
    they cannot be. weights: which operand they are."""
    if {dtype_of(v).name for v in (*op.operands, *op.results)} != {"f32"}:
        return None
    halves = as_halves(b, op.operands[weights])
    if halves is None:
        return None
    factors = list(op.operands)
    factors[weights] = halves
    result: Value = b.like(op, factors, accumulate="f32")
    return result
