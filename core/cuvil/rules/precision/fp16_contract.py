"""Matrices of matrix products in float16, where a person asked for that."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, is_constant
from cuvil.rules.precision._fp16 import with_halves


@rule(
    "contract",
    example=case(
        lambda b, x: b.contract(x, b.const(sample(33, 40)), spec="mk,kn->mn"), x="[B, 33] f32"
    ),
    near_miss=[
        case(lambda b, x: b.contract(x, b.const(sample(33, 5)), spec="mk,kn->mn"), x="[B, 33] f32"),
        case(
            lambda b, x: b.contract(b.const(sample(40, 33)), x, spec="mk,kn->mn"), x="[33, 8] f32"
        ),
        case(
            lambda b, x: b.contract(
                x, b.const(np.full((33, 40), 1e5, np.float32)), spec="mk,kn->mn"
            ),
            x="[B, 33] f32",
        ),
    ],
    on=False,
    tolerance=2.5e-3,
)
def fp16_contract(b: Rewriter, op: Operation) -> Value | None:
    """A product with a constant matrix whose columns are those of the result."""
    spec = parse(attrs_of(op).spec)
    last = spec.out[-1:]
    for matrix, (mine, others) in enumerate(((spec.a, spec.b), (spec.b, spec.a))):
        if last and last in mine and last not in others and is_constant(op.operands[matrix]):
            return with_halves(b, op, matrix)
    return None
