"""Matrix products of float32 in bfloat16, where a person asked for that."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, is_constant
from cuvil.rules.precision._bf16 import fits, rounded


@rule(
    "contract",
    example=case(
        lambda b, x: b.contract(x, b.const(sample(32, 5)), spec="mk,kn->mn"), x="[B, 32] f32"
    ),
    near_miss=[
        case(lambda b, x: b.contract(x, b.const(sample(33, 5)), spec="mk,kn->mn"), x="[B, 33] f32"),
        case(lambda b, x, y: b.contract(x, y, spec="mk,kn->mn"), x="[3, 32] f32", y="[32, 4] f32"),
    ],
    on=False,
    tolerance=3e-2,
)
def bf16_contract(b: Rewriter, op: Operation) -> Value | None:
    """A product with a constant matrix, of rows that lie together, on rounded operands."""
    spec = parse(attrs_of(op).spec)
    for rows, matrix in ((0, 1), (1, 0)):
        letters, dims = (spec.a, spec.b)[rows], dims_of(op.operands[rows])
        if is_constant(op.operands[matrix]) and letters[-1:] and letters[-1] in spec.summed:
            return rounded(b, op) if fits(dims[-1]) else None
    return None
