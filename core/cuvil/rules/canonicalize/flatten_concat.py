"""Concatenations of concatenations, of nothing, of neighbouring slices."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, one_user


@rule(
    "concat",
    example=[
        case(
            lambda b, x, y: b.concat(b.concat(x, y, axis=1), x, axis=1),
            x="[B, 3] f32", y="[B, 5] f32",
        ),
        case(lambda b, x, y: b.concat(x, y, axis=0), x="[3] f32", y="[0] f32"),
        case(
            lambda b, x: b.concat(
                b.slice(x, starts=(0,), steps=(1,), dims=(2,)),
                b.slice(x, starts=(2,), steps=(1,), dims=(3,)),
                axis=0,
            ),
            x="[5] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x, y: b.concat(b.concat(x, x, axis=0), y, axis=1),
            x="[B, 3] f32", y="[2*B, 5] f32",
        ),
        case(
            lambda b, x: b.concat(
                b.slice(x, starts=(2,), steps=(1,), dims=(3,)),
                b.slice(x, starts=(0,), steps=(1,), dims=(2,)),
                axis=0,
            ),
            x="[5] f32",
        ),
    ],
)  # fmt: skip
def flatten_concat(b: Rewriter, op: Operation) -> Value | None:
    """One level of parts, none of them empty, none cut in two."""
    axis = attrs_of(op).axis
    parts: list[Value] = []
    for part in op.operands:
        inner = b.producer(part, "concat")
        if inner is not None and attrs_of(inner).axis == axis and one_user(part) is op:
            parts += inner.operands
        elif dims_of(part)[axis] != 0:
            joined = _joined(b, parts[-1], part, axis) if parts else None
            parts[-1:] = [joined] if joined is not None else [*parts[-1:], part]
    if not parts or parts == list(op.operands):
        return None
    result: Value = parts[0] if len(parts) == 1 else b.concat(*parts, axis=axis)
    return result


def _joined(b: Rewriter, x: Value, y: Value, axis: int) -> Value | None:
    """Two slices of one tensor, the second beginning where the first ends, as one."""
    first, second = b.producer(x, "slice"), b.producer(y, "slice")
    if first is None or second is None or first.operands[0] is not second.operands[0]:
        return None
    f, s = attrs_of(first), attrs_of(second)
    want = [*f.starts]
    want[axis] = f.starts[axis] + f.steps[axis] * f.dims[axis]
    if f.steps != s.steps or tuple(want) != s.starts:
        return None
    dims = [*f.dims]
    dims[axis] = f.dims[axis] + s.dims[axis]
    result: Value = b.slice(first.operands[0], starts=f.starts, steps=f.steps, dims=dims)
    return result
