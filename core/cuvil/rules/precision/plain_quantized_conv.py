"""Convolutions of scaled codes, for cpus that multiply bytes hardly faster than floats."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rules.precision._examples import CONV
from cuvil.rules.precision._tiles import by_tiles
from cuvil.rules.precision.quantized_conv import conv_factors, conv_of

_SHARE = 0.6  # a sum of bytes takes three quarters of the time of one in float32
_TAPS = (np.arange(64 * 64 * 9).reshape(64, 64, 3, 3) * 37 % 255 - 127).astype(np.int8)


def _conv(b: Rewriter, x: Value, taps: np.ndarray) -> Value:
    result: Value = b.conv(
        b.dequantize_linear(x, b.scalar(0.5, "f32"), b.scalar(7, "u8")),
        b.dequantize_linear(b.const(taps), b.scalar(0.25, "f32")), **CONV,
    )  # fmt: skip
    return result


@rule(
    "conv",
    example=case(lambda b, x: _conv(b, x, _TAPS[..., :1, :1]), x="[1, 30, 30, 64] u8"),
    near_miss=case(lambda b, x: _conv(b, x, _TAPS), x="[1, 30, 30, 64] u8"),
    on=False,
    tolerance=1e-5,
)
def plain_quantized_conv(b: Rewriter, op: Operation) -> Value | None:
    """As `quantized_conv`, where fewer products of floats are not as fast."""
    factors = conv_factors(b, op)
    if isinstance(factors, str) or (factors.scale is not None and by_tiles(op, _SHARE)):
        return None
    return conv_of(b, op, factors)
