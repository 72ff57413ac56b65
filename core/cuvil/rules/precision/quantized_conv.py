"""Convolutions of scaled codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of
from cuvil.rules.precision._codes import GROUP, LEAST, Factors, factors_of, finished, fits

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
            b.dequantize_linear(b.const(_TAPS[:, :3, :1, :1]), b.const(_SCALES)), **_CONV,
        ),
        x="[B, 4, 5, 3] u8",
    ),
    tolerance=1e-5,
)  # fmt: skip
def quantized_conv(b: Rewriter, op: Operation) -> Value | None:
    """A channels-last convolution of numbers that stand as bytes is one of the bytes.

    Few channels, as of a network's first image, get zeros beside them up to whole groups.
    """
    attrs, (x, w) = attrs_of(op), op.operands[:2]
    plain = attrs.layout == "channels_last" and not any(attrs.pads) and len(op.operands) == 2
    missing = _missing(dims_of(w))
    if not plain or attrs.accumulate or missing is None:
        return None
    factors = factors_of(b, x, w, 0)
    if factors is None:
        return None
    if missing:
        factors = _widened(b, factors, missing)
    total = b.like(op, [factors.rows.codes, factors.matrix.codes], accumulate="i32")
    return finished(b, total, factors, 0)


def _missing(taps: Sequence[Dim]) -> int | None:
    """Channels to add, so that they are whole groups; None where bytes gain nothing."""
    channels, *window = taps[1:]
    if fits(channels):
        return 0
    if not isinstance(channels, int) or channels >= LEAST:
        return None
    groups = -(-channels // GROUP)
    enough = groups * GROUP * math.prod(d for d in window if isinstance(d, int)) >= LEAST
    return groups * GROUP - channels if enough else None


def _widened(b: Rewriter, f: Factors, channels: int) -> Factors:
    """The same sums over more channels, whose taps are zero."""
    image, taps = f.rows.codes, f.matrix.codes
    rank = len(dims_of(image))
    none, last, second = (0,) * rank, (0,) * (rank - 1) + (channels,), (0, channels)
    zero = b.scalar(0, dtype_of(image).name)
    codes = b.pad(image, zero, low=none, high=last, mode="constant")
    wide = b.pad(
        taps, b.scalar(0, "i8"), low=none, high=second + (0,) * (rank - 2), mode="constant"
    )
    rows, matrix = replace(f.rows, codes=codes), replace(f.matrix, codes=wide)
    return Factors(rows, matrix, f.scale)
