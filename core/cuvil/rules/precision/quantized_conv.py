"""Convolutions of scaled codes."""

from __future__ import annotations

import numpy as np

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of
from cuvil.rules.precision._codes import factors_of, finished, fits

_TAPS = (np.arange(20 * 16 * 9).reshape(20, 16, 3, 3) * 37 % 255 - 127).astype(np.int8)
_SCALES = (np.arange(1, 21, dtype=np.float32) / 64).reshape(20, 1, 1, 1)
_CONV = {"strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4, "layout": "channels_last"}


@rule(
    "conv",
    example=case(
        lambda b, x: b.conv(
            b.pad(b.dequantize_linear(x, b.scalar(0.5, "f32"), b.scalar(7, "u8")),
                  b.scalar(0, "f32"), low=(0, 1, 1, 0), high=(0, 1, 1, 0), mode="constant"),
            b.dequantize_linear(b.const(_TAPS), b.const(_SCALES)), **_CONV,
        ),
        x="[B, 4, 5, 16] u8",
    ),
    near_miss=case(
        lambda b, x: b.conv(
            b.dequantize_linear(x, b.scalar(0.5, "f32"), b.scalar(7, "u8")),
            b.dequantize_linear(b.const(_TAPS[:, :3]), b.const(_SCALES)), **_CONV,
        ),
        x="[B, 4, 5, 3] u8",
    ),
    tolerance=1e-5,
)  # fmt: skip
def quantized_conv(b: Rewriter, op: Operation) -> Value | None:
    """A channels-last convolution of numbers that stand as bytes is one of the bytes."""
    attrs, (x, w) = attrs_of(op), op.operands[:2]
    plain = attrs.layout == "channels_last" and not any(attrs.pads) and len(op.operands) == 2
    if not plain or attrs.accumulate or not fits(dims_of(w)[1]):
        return None
    factors = factors_of(b, x, w, 0)
    if factors is None:
        return None
    total = b.like(op, [factors.rows.codes, factors.matrix.codes], accumulate="i32")
    return finished(b, total, factors, 0)
