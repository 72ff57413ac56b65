"""Softmaxes of matrices that were made flat for them."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, one_user, rank_of


@rule(
    "reshape",
    example=case(
        lambda b, x: b.reshape(
            b.softmax(b.reshape(x, dims=(6, 4)), axis=1), dims=(2, 3, 4)
        ),
        x="[2, 3, 4] f32",
    ),
    near_miss=[
        case(
            lambda b, x: b.reshape(b.softmax(b.reshape(x, dims=(6, 4)), axis=0), dims=(2, 3, 4)),
            x="[2, 3, 4] f32",
        ),
        case(
            lambda b, x: b.reshape(b.softmax(b.reshape(x, dims=(4, 6)), axis=1), dims=(2, 3, 4)),
            x="[2, 3, 4] f32",
        ),
        case(
            lambda b, x: (
                b.reshape(y := b.softmax(b.reshape(x, dims=(6, 4)), axis=1), dims=(2, 3, 4)),
                b.neg(y),
            ),
            x="[2, 3, 4] f32",
        ),
    ],
    tolerance=1e-6,
)  # fmt: skip
def softmax_of_reshape(b: Rewriter, op: Operation) -> Value | None:
    """A softmax over the last axis between two reshapes that leave this axis alone and undo each
    other is a softmax of the tensor as it was."""
    softmax = b.producer(op.operands[0], "softmax", "log_softmax")
    flat = b.producer(softmax.operands[0], "reshape") if softmax is not None else None
    if softmax is None or flat is None or one_user(softmax.results[0]) is not op:
        return None
    x = flat.operands[0]
    same = dims_of(x) == dims_of(op.results[0])
    if not same or not rank_of(x) or dims_of(x)[-1:] != dims_of(flat.results[0])[-1:]:
        return None
    if attrs_of(softmax).axis != rank_of(flat.results[0]) - 1:
        return None
    b.keep_location(softmax)
    result: Value = b.like(softmax, [x], axis=rank_of(x) - 1)
    return result
