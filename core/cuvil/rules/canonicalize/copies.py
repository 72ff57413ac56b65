"""Ops that change nothing."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, name_of, tensor_type


@rule(
    "identity", "cast", "reshape", "broadcast", "transpose", "slice", "pad", "concat",
    example=[
        case(lambda b, x: b.identity(x), x="[B] f32"),
        case(lambda b, x: b.cast(x, to="f32"), x="[B] f32"),
        case(lambda b, x: b.reshape(x, dims=b.dims_of(x)), x="[2, B] f32"),
        case(lambda b, x: b.broadcast(x, dims=b.dims_of(x)), x="[2, B] f32"),
        case(lambda b, x: b.transpose(x, perm=(0, 1)), x="[2, B] f32"),
        case(lambda b, x: b.slice(x, starts=(0,), steps=(1,), dims=b.dims_of(x)), x="[B] f32"),
        case(lambda b, x: b.pad(x, b.scalar(7, x), low=(0,), high=(0,)), x="[B] f32"),
        case(lambda b, x: b.concat(x, axis=0), x="[B] f32"),
    ],
    near_miss=[
        case(lambda b, x: b.transpose(x, perm=(1, 0)), x="[3, 3] f32"),
        case(lambda b, x: b.slice(x, starts=(2,), steps=(-1,), dims=(3,)), x="[3] f32"),
        case(lambda b, x: b.pad(x, b.scalar(7, x), low=(1,), high=(-1,)), x="[3] f32"),
    ],
)  # fmt: skip
def copies(b: Rewriter, op: Operation) -> Value | None:
    """A view, cast or concatenation whose result is its operand as it stands."""
    name, a, x = name_of(op), attrs_of(op), op.operands[0]
    if tensor_type(x) != tensor_type(op.results[0]):
        return None
    if name == "transpose" and a.perm != tuple(range(len(a.perm))):
        return None
    if name == "slice" and (any(a.starts) or any(s != 1 for s in a.steps)):
        return None
    if name == "pad" and (any(a.low) or any(a.high)):
        return None
    return x if name != "concat" or len(op.operands) == 1 else None
