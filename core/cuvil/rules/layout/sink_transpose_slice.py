"""Transposes before slices, pads and resizes."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, name_of
from cuvil.rules.layout._sink import moved, transposed

_BY_AXIS = {"slice": ("starts", "steps", "dims"), "pad": ("low", "high"), "resize": ("dims",)}


@rule(
    *_BY_AXIS,
    example=[
        case(
            lambda b, x: b.slice(
                b.transpose(x, perm=(2, 0, 1)), starts=(1, 0, 2), steps=(1, 1, 1), dims=(4, 2, 1)
            ),
            x="[2, 3, 5] f32",
        ),
        case(
            lambda b, x: b.pad(
                b.transpose(x, perm=(2, 0, 1)), b.scalar(7, x), low=(1, 0, 2), high=(0, 3, 0)
            ),
            x="[B, 3, 5] f32",
        ),
        case(
            lambda b, x: b.resize(
                b.transpose(x, perm=(0, 3, 1, 2)), axes=(2, 3), dims=(1, 2, 6, 10), mode="linear"
            ),
            x="[1, 3, 5, 2] f32",
        ),
    ],
    near_miss=case(
        lambda b, x: b.slice(x, starts=(1, 0), steps=(1, 1), dims=(2, 2)), x="[3, 5] f32"
    ),
    tolerance=1e-6,
)
def sink_transpose_slice(b: Rewriter, op: Operation) -> Value | None:
    """What works axis by axis is done before a transpose, on the axes as they then are."""
    found, a = transposed(b, op.operands[0]), attrs_of(op)
    if found is None:
        return None
    x, perm = found
    changed = {name: moved(getattr(a, name), perm) for name in _BY_AXIS[name_of(op)]}
    if name_of(op) == "resize":
        changed["axes"] = [perm[i] for i in a.axes]
    result = b.like(op, [x, *op.operands[1:]], **changed)
    return b.transpose(result, perm=perm)
