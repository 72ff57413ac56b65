"""Transposed operands of contractions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.axes import inverse, permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of


@rule(
    "contract",
    example=case(
        lambda b, x, y: b.contract(x, b.transpose(y, perm=(0, 2, 1)), spec="bmk,bkn->bmn"),
        x="[2, S, 4] f32", y="[2, S, 4] f32",
    ),
    near_miss=case(
        lambda b, x, y: b.contract(x, b.reshape(y, dims=(4, 3)), spec="mk,kn->mn"),
        x="[B, 4] f32", y="[3, 4] f32",
    ),
    group="vectorize_matmul",
    tolerance=1e-6,
)  # fmt: skip
def contract_of_transpose(b: Rewriter, op: Operation) -> Value | None:
    """A contraction reads a transposed operand by other letters."""
    spec = parse(attrs_of(op).spec)
    operands, letters = list(op.operands), [spec.a, spec.b]
    for i, value in enumerate(operands):
        moved = b.producer(value, "transpose")
        if moved is not None:
            operands[i] = moved.operands[0]
            letters[i] = "".join(permuted(letters[i], inverse(attrs_of(moved).perm)))
    if operands == list(op.operands):
        return None
    result: Value = b.contract(
        *operands, spec=f"{letters[0]},{letters[1]}->{spec.out}", accumulate=attrs_of(op).accumulate
    )
    return result
