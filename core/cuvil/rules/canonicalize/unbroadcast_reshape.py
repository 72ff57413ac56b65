"""Reshapes of repeated elements."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import dims_of, size_of


@rule(
    "reshape", "transpose",
    example=case(
        lambda b, x: b.reshape(b.broadcast(x, dims=(2, 3)), dims=(6,)), x="[1] f32"
    ),
    near_miss=case(lambda b, x: b.reshape(b.broadcast(x, dims=(2, 3)), dims=(6,)), x="[3] f32"),
)  # fmt: skip
def unbroadcast_reshape(b: Rewriter, op: Operation) -> Value | None:
    """A view of one number repeated is that number repeated."""
    inner = b.producer(op.operands[0], "broadcast")
    if inner is None or size_of(inner.operands[0]) != 1:
        return None
    dims: tuple[Dim, ...] = dims_of(op.results[0])
    one = b.reshape(inner.operands[0], dims=())
    result: Value = b.broadcast(one, dims=dims)
    return result
