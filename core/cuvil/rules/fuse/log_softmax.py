"""Logarithms of softmax."""

from __future__ import annotations

from typing import Any

from cuvil.ir.names import Value
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case


@rewrites(
    lambda p, x, axis: p.log(p.softmax(x, axis=axis)),
    example=case(lambda b, x: b.log(b.softmax(x, axis=1)), x="[B, 9] f32"),
    near_miss=case(lambda b, x: b.log(b.exp(x)), x="[B, 9] f32"),
    tolerance=1e-5,
)
def log_softmax(b: Rewriter, x: Value, axis: Any) -> Value:
    """log(softmax(x)), which then does not become -inf where a probability underflows."""
    result: Value = b.log_softmax(x, axis=axis)
    return result
