"""What the rules to bfloat16 share."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, is_constant

LEAST = 16  # terms of a sum that lie together: with fewer nothing is gained


def fits(terms: Dim) -> bool:
    """Whether so many terms are pairs, and enough of them."""
    return isinstance(terms, int) and terms >= LEAST and terms % 2 == 0


def fits_conv(op: Operation) -> bool:
    """A channels-last convolution with constant taps, its image padded already."""
    a, weights = attrs_of(op), op.operands[1]
    plain = a.layout == "channels_last" and not any(a.pads) and len(op.operands) == 2
    return plain and is_constant(weights) and fits(dims_of(weights)[1])


def rounded(b: Rewriter, op: Operation) -> Value | None:
    """The same products of rounded factors, summed in float32; None unless they are float32."""
    if {dtype_of(v).name for v in (*op.operands, *op.results)} != {"f32"}:
        return None
    result: Value = b.like(op, [b.cast(v, to="bf16") for v in op.operands], accumulate="f32")
    return result
