"""Slices that take back a part of a concatenation."""

from __future__ import annotations

from cuvil.ir.dims import Dim, known_ge
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of


@rule(
    "slice",
    example=case(
        lambda b, x, y: b.slice(b.concat(x, y, axis=0), starts=(4, 0), steps=(1, 1), dims=(2, 2)),
        x="[3, 2] f32", y="[5, 2] f32",
    ),
    near_miss=case(
        lambda b, x, y: b.slice(b.concat(x, y, axis=0), starts=(2, 0), steps=(1, 1), dims=(2, 2)),
        x="[3, 2] f32", y="[5, 2] f32",
    ),
)  # fmt: skip
def slice_of_concat(b: Rewriter, op: Operation) -> Value | None:
    """A slice that lies within one part of a concatenation is a slice of that part."""
    source = b.producer(op.operands[0], "concat")
    if source is None:
        return None
    a, axis = attrs_of(op), attrs_of(source).axis
    first, last = a.starts[axis], a.starts[axis] + a.steps[axis] * (a.dims[axis] - 1)
    low, high = (first, last) if a.steps[axis] > 0 else (last, first)
    start: Dim = 0
    for part in source.operands:
        end = start + dims_of(part)[axis]
        if known_ge(low, start, b.ranges) and known_ge(end - 1, high, b.ranges):
            starts = [*a.starts]
            starts[axis] = first - start
            result: Value = b.slice(part, starts=starts, steps=a.steps, dims=a.dims)
            return result
        start = end
    return None
