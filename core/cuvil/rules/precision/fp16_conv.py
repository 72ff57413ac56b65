"""Taps of convolutions in float16, where a person asked for that."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, is_constant
from cuvil.rewrite.winograd_cost import GAIN
from cuvil.rules.precision._examples import CONV
from cuvil.rules.precision._fp16 import with_halves
from cuvil.rules.precision._tiles import by_tiles


@rule(
    "conv",
    example=case(lambda b, x: b.conv(x, b.const(sample(32, 33, 1, 1)), **CONV),
                 x="[B, 3, 5, 33] f32"),
    near_miss=[
        case(lambda b, x: b.conv(x, b.const(sample(64, 64, 3, 3)), **CONV),
             x="[1, 30, 30, 64] f32"),
        case(lambda b, x: b.conv(x, b.const(sample(1200, 1, 1, 1)), groups=1200, **CONV),
             x="[B, 3, 5, 1200] f32"),
    ],
    on=False,
    tolerance=2.5e-3,
)  # fmt: skip
def fp16_conv(b: Rewriter, op: Operation) -> Value | None:
    """A channels-last convolution, where fewer products of float32 are not as fast."""
    a, weights = attrs_of(op), op.operands[1]
    plain = a.layout == "channels_last" and not any(a.pads) and len(op.operands) == 2
    if not plain or not is_constant(weights):
        return None
    by_channel = a.groups > 1 and dims_of(weights)[1] == 1
    if by_channel or by_tiles(op, GAIN):
        return None
    return with_halves(b, op, 1)
