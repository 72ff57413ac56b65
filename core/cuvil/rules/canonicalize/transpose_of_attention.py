"""Transposed results of attentions."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.attention import letters_of
from cuvil.rewrite.axes import permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, one_user, rank_of

_QKV = {"q": "[B, 2, S, 4] f32", "k": "[B, 2, T, 4] f32", "v": "[B, 2, T, 6] f32"}


@rule(
    "transpose",
    example=case(lambda b, *x: b.transpose(b.attention(*x, scale=0.5), perm=(0, 2, 1, 3)), **_QKV),
    near_miss=[
        case(lambda b, *x: b.transpose(b.attention(*x, scale=0.5), perm=(0, 1, 3, 2)), **_QKV),
        case(
            lambda b, *x: ((y := b.attention(*x, scale=0.5)), b.transpose(y, perm=(0, 2, 1, 3))),
            **_QKV,
        ),
    ],
    group="vectorize_matmul",
    tolerance=1e-6,
)
def transpose_of_attention(b: Rewriter, op: Operation) -> Value | None:
    """An attention writes its result in another order of axes, where the last one stays."""
    inner = b.producer(op.operands[0], "attention")
    if inner is None or one_user(inner.results[0]) is not op:
        return None
    letters = letters_of(attrs_of(inner).spec, [rank_of(v) for v in inner.operands])
    out = "".join(permuted(letters.out, attrs_of(op).perm))
    alone = [c for c in out if c in letters.q and c not in letters.k + letters.v]
    if out[-1] != letters.out[-1] or alone[-1] != letters.row:
        return None
    b.keep_location(inner)
    operands = ",".join(letters.operands[: len(inner.operands)])
    result: Value = b.like(inner, inner.operands, spec=f"{operands}->{out}")
    return result
