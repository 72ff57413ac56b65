"""Rounding to bfloat16 and views of tensors."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dtype_of, name_of, one_user, owner

_VIEWS = ("pad", "reshape", "slice", "transpose")


@rule(
    "cast",
    example=case(lambda b, x: b.cast(b.transpose(x, perm=(1, 0)), to="bf16"), x="[B, 5] f32"),
    near_miss=case(
        lambda b, x: (b.cast((y := b.transpose(x, perm=(1, 0))), to="bf16"), y), x="[B, 5] f32"
    ),
    on=False,
)
def round_before_views(b: Rewriter, op: Operation) -> Value | None:
    """What is only moved is rounded first: half the bytes move."""
    view = owner(op.operands[0])
    if attrs_of(op).to != "bf16" or dtype_of(op.operands[0]).name != "f32" or view is None:
        return None
    if name_of(view) not in _VIEWS or one_user(view.results[0]) is not op:
        return None
    result: Value = b.like(view, [b.cast(v, to="bf16") for v in view.operands])
    return result
