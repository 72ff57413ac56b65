"""Transposed operands of attentions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.attention import letters_of
from cuvil.rewrite.axes import inverse, permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, rank_of

_HEADS = "[B, S, 2, 4] f32"


def _moved(b: Rewriter, *operands: Value) -> Value:
    turned = [b.transpose(x, perm=(0, 2, 1, 3)) for x in operands]
    result: Value = b.attention(*turned, scale=0.5)
    return result


@rule(
    "attention",
    example=case(_moved, q=_HEADS, k=_HEADS, v=_HEADS),
    near_miss=case(
        lambda b, q, k, v: b.attention(q, k, b.transpose(v, perm=(1, 0)), scale=0.5),
        q="[S, 4] f32", k="[T, 4] f32", v="[5, T] f32",
    ),
    group="vectorize_matmul",
    tolerance=1e-6,
)  # fmt: skip
def attention_of_transpose(b: Rewriter, op: Operation) -> Value | None:
    """An attention reads transposed queries, keys and values by other letters, where the columns
    of the values stay last."""
    letters = letters_of(attrs_of(op).spec, [rank_of(v) for v in op.operands])
    operands, parts = list(op.operands), list(letters.operands[: len(op.operands)])
    for i, value in enumerate(operands[:3]):
        moved = b.producer(value, "transpose")
        if moved is None:
            continue
        part = "".join(permuted(parts[i], inverse(attrs_of(moved).perm)))
        if i < 2 or part[-1] == letters.column:
            operands[i], parts[i] = moved.operands[0], part
    if operands == list(op.operands):
        return None
    result: Value = b.like(op, operands, spec=f"{','.join(parts)}->{letters.out}")
    return result
