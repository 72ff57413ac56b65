"""Masks of attentions in the order in which their kernel reads them."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ops.attention import letters_of
from cuvil.rewrite.axes import permuted
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, rank_of

_QKV = {"q": "[B, 2, S, 4] f32", "k": "[B, 2, T, 4] f32", "v": "[B, 2, T, 6] f32"}


@rule(
    "attention",
    example=[
        case(lambda b, *x: b.attention(*x, scale=0.5), **_QKV, mask="[B, 1, S, T] f32"),
        case(lambda b, *x: b.attention(*x, scale=0.5), **_QKV, mask="[S, T] bool"),
    ],
    near_miss=[
        case(lambda b, *x: b.attention(*x, scale=0.5), **_QKV),
        case(lambda b, *x: b.attention(*x, scale=0.5), **_QKV, mask="[B, 1, 1, T] f32"),
        case(lambda b, *x: b.attention(*x, scale=0.5), **_QKV, mask="[S, 1] f32"),
    ],
    tolerance=1e-6,
)
def attention_mask(b: Rewriter, op: Operation) -> Value | None:
    """A mask with a row per query has its queries side by side, as the scores have them: turned
    once, for all heads and often for all layers."""
    if len(op.operands) < 4 or dtype_of(op.operands[0]).name != "f32":
        return None
    *others, mask = op.operands
    letters = letters_of(attrs_of(op).spec, [rank_of(v) for v in op.operands])
    if letters.row not in letters.mask:
        return None
    axis, dims = letters.mask.index(letters.row), dims_of(mask)
    if dims[axis] == 1 or all(d == 1 for d in dims[axis + 1 :]):
        return None
    perm = [i for i in range(len(dims)) if i != axis] + [axis]
    turned = "".join(permuted(letters.mask, perm))
    spec = f"{letters.q},{letters.k},{letters.v},{turned}->{letters.out}"
    result: Value = b.like(op, [*others, b.transpose(mask, perm=perm)], spec=spec)
    return result
