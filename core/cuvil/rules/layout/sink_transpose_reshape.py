"""Transposes before reshapes."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import channels_first, inverse, permuted, reshape_groups
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dims_of
from cuvil.rules.layout._sink import transposed


@rule(
    "reshape",
    example=[
        case(
            lambda b, x: b.reshape(b.transpose(x, perm=(0, 3, 1, 2)), dims=(2, 5, 12)),
            x="[2, 3, 4, 5] f32",
        ),
        case(  # a shuffle of channels
            lambda b, x: b.reshape(b.transpose(x, perm=(0, 4, 3, 1, 2)), dims=(2, 6, 3, 4)),
            x="[2, 3, 4, 2, 3] f32",
        ),
    ],
    near_miss=case(
        lambda b, x: b.reshape(b.transpose(x, perm=(0, 2, 1, 3)), dims=(2, 4, 15)),
        x="[2, 3, 4, 5] f32",
    ),
)
def sink_transpose_reshape(b: Rewriter, op: Operation) -> Value | None:
    """A reshape of groups of axes that are neighbours before the transpose too is done before it.

    Where only the order inside groups differs, the channels of an image say, that order is made
    first, and what is left of the transpose follows.
    """
    found = transposed(b, op.operands[0])
    if found is None:
        return None
    x, perm = found
    target = dims_of(op.results[0])
    groups = reshape_groups(dims_of(op.operands[0]), target)
    if groups is None:
        return None
    # Groups in the order of their last axis before the transpose; those without one stay behind
    # the group that they follow.
    keys: list[int] = []
    for source, _ in groups:
        keys.append(max((perm[i] for i in source), default=keys[-1] if keys else -1))
    order = sorted(range(len(groups)), key=lambda i: (keys[i], i))
    first = tuple(perm[i] for g in order for i in groups[g][0])
    axes = [j for g in order for j in groups[g][1]]
    last = inverse(axes)
    if last == tuple(range(len(last))):
        return None
    if first != tuple(range(len(first))):
        if last != channels_first(len(last)):
            return None
        x = b.transpose(x, perm=first)
    result = b.reshape(x, dims=permuted(target, axes))
    return b.transpose(result, perm=last)
