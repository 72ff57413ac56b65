"""Transposed convolutions whose windows do not overlap."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, rank_of

_LAST = {"dilations": (1, 1), "layout": "channels_last"}


@rule(
    "conv_transpose",
    example=case(
        lambda b, x: b.conv_transpose(
            x, b.const(sample(3, 4, 2, 2)), strides=(2, 2), pads=(0,) * 4, **_LAST
        ),
        x="[B, 5, W, 3] f32",
    ),
    near_miss=case(
        lambda b, x: b.conv_transpose(
            x, b.const(sample(3, 4, 3, 3)), strides=(2, 2), pads=(0,) * 4, **_LAST
        ),
        x="[B, 5, W, 3] f32",
    ),
    tolerance=1e-6,
)
def transposed_conv_as_product(b: Rewriter, op: Operation) -> Value | None:
    """Every input pixel gives a block of output pixels of its own: one product, no sums between
    them, whose result is laid out as the image."""
    a, (x, w) = attrs_of(op), op.operands[:2]
    if a.layout != "channels_last" or a.groups != 1 or len(op.operands) != 2 or rank_of(x) != 4:
        return None
    whole = dims_of(w)[2:] == tuple(a.strides)
    if not whole or any(a.pads) or any(a.output_padding or ()) or set(a.dilations) != {1}:
        return None
    blocks = b.contract(x, w, spec="nhwi,iopq->nhpwqo")
    return b.reshape(blocks, dims=dims_of(op.results[0]))
