"""Transposes that move no element."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.axes import moves_only_units
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of


@rule(
    "transpose",
    example=case(lambda b, x: b.transpose(x, perm=(0, 2, 3, 1)), x="[B, 8, 1, 1] f32"),
    near_miss=case(lambda b, x: b.transpose(x, perm=(0, 2, 1)), x="[1, 8, 2] f32"),
)
def transpose_to_reshape(b: Rewriter, op: Operation) -> Value | None:
    """A transpose that only moves dims of 1 is a reshape."""
    x = op.operands[0]
    if not moves_only_units(dims_of(x), attrs_of(op).perm):
        return None
    result: Value = b.reshape(x, dims=dims_of(op.results[0]))
    return result
