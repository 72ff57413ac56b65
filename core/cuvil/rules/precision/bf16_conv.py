"""Convolutions of float32 in bfloat16, where a person asked for that."""

from __future__ import annotations

from cuvil.ir.dims import literal
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of
from cuvil.rewrite.winograd_cost import choose, pixels_of, taps_of
from cuvil.rules.precision._bf16 import fits_conv, rounded

_SHARE = 0.45  # a rounded sum takes half of the time of one in float32
_CONV = {"strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4, "layout": "channels_last"}


@rule(
    "conv",
    example=case(lambda b, x: b.conv(x, b.const(sample(4, 32, 1, 1)), **_CONV),
                 x="[B, 3, 5, 32] f32"),
    near_miss=[
        case(lambda b, x: b.conv(x, b.const(sample(64, 64, 3, 3)), **_CONV),
             x="[1, 30, 30, 64] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(4, 3, 1, 1)), **_CONV), x="[B, 3, 5, 3] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(32, 1, 1, 1)), groups=32, **_CONV),
             x="[B, 3, 5, 32] f32"),
    ],
    on=False,
    tolerance=3e-2,
)  # fmt: skip
def bf16_conv(b: Rewriter, op: Operation) -> Value | None:
    """A convolution on rounded factors, where fewer products of float32 are not as fast."""
    if not fits_conv(op):
        return None
    a, result = attrs_of(op), dims_of(op.results[0])
    n, channels, *taps = (literal(d) for d in dims_of(op.operands[1]))
    plain = a.groups > 1 or any(s != 1 for s in (*a.strides, *a.dilations)) or len(taps) > 2
    if not plain and choose(pixels_of(result), taps_of(taps), channels, n, _SHARE) is not None:
        return None
    return rounded(b, op)
