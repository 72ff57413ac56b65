"""Transposes before softmax and norms."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, name_of
from cuvil.rules.layout._sink import transposed


@rule(
    "softmax", "log_softmax", "layer_norm", "rms_norm",
    example=[
        case(
            lambda b, x: b.softmax(b.transpose(x, perm=(0, 3, 1, 2)), axis=1),
            x="[B, 3, 5, 2] f32",
        ),
        case(
            lambda b, x: b.layer_norm(b.transpose(x, perm=(1, 0, 2)), axis=2), x="[B, 3, 5] f32"
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.softmax(b.transpose(x, perm=(0, 2, 1)), axis=2), x="[B, 3, 5] f32"
        ),
        case(
            lambda b, x: b.layer_norm(b.transpose(x, perm=(0, 2, 1)), axis=2), x="[B, 3, 5] f32"
        ),
    ],
    tolerance=1e-5,
)  # fmt: skip
def sink_transpose_norm(b: Rewriter, op: Operation) -> Value | None:
    """A row stays one: the axis of a softmax does not leave the last place, and those of a norm
    are where they were."""
    found, axis = transposed(b, op.operands[0]), attrs_of(op).axis
    if found is None:
        return None
    x, perm = found
    last = len(perm) - 1
    if name_of(op).endswith("softmax"):
        if axis == last and perm[axis] != last:
            return None
        axis = perm[axis]
    elif perm[axis:] != tuple(range(axis, last + 1)):
        return None
    result = b.like(op, [x, *op.operands[1:]], axis=axis)
    return b.transpose(result, perm=perm)
