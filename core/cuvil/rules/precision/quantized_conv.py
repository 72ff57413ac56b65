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
from cuvil.rules.precision._codes import GROUP, LEAST, Factors, factors_of, finished, fits, too_few
from cuvil.rules.precision._examples import CONV

_TAPS = (np.arange(20 * 16 * 9).reshape(20, 16, 3, 3) * 37 % 255 - 127).astype(np.int8)
_SCALES = (np.arange(1, 21, dtype=np.float32) / 64).reshape(20, 1, 1, 1)


@rule(
    "conv",
    example=case(
        lambda b, x: b.conv(
            b.pad(b.dequantize_linear(x, b.scalar(0.5, "f32"), b.scalar(7, "u8")),
                  b.scalar(0, "f32"), low=(0, 1, 1, 0), high=(0, 1, 1, 0), mode="constant"),
            b.dequantize_linear(b.const(_TAPS), b.const(_SCALES)), **CONV,
        ),
        x="[B, 4, 5, 16] u8",
    ),
    near_miss=case(
        lambda b, x: b.conv(
            b.dequantize_linear(x, b.scalar(0.5, "f32"), b.scalar(7, "u8")),
            b.dequantize_linear(b.const(_TAPS[:, :3, :1, :1]), b.const(_SCALES)), **CONV,
        ),
        x="[B, 4, 5, 3] u8",
    ),
    tolerance=1e-5,
)  # fmt: skip
def quantized_conv(b: Rewriter, op: Operation) -> Value | None:
    """A channels-last convolution of numbers that stand as bytes is one of the bytes.

    Few channels, as of a network's first image, get zeros beside them up to whole groups.
    """
    factors = conv_factors(b, op)
    return None if isinstance(factors, str) else conv_of(b, op, factors)


def conv_of(b: Rewriter, op: Operation, factors: Factors) -> Value:
    """The convolution of these bytes."""
    missing = _missing(dims_of(op.operands[1]))
    if missing:
        factors = _widened(b, factors, missing)
    total = b.like(op, [factors.rows.codes, factors.matrix.codes], accumulate="i32")
    return finished(b, total, factors, 0)


def conv_factors(b: Rewriter, op: Operation) -> Factors | str:
    """What the bytes of a convolution are; why it is not one of bytes, where it is not."""
    attrs, (x, w) = attrs_of(op), op.operands[:2]
    if attrs.accumulate:
        return f"it is one that adds up in {attrs.accumulate}"
    if attrs.layout != "channels_last" or any(attrs.pads) or len(op.operands) != 2:
        return "its channels are not last"
    if _missing(dims_of(w)) is None:
        return too_few(dims_of(w)[1])
    return factors_of(b, x, w, 0)


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


def _padded(b: Rewriter, codes: Value, high: tuple[int, ...]) -> Value:
    """Zeros behind the codes, or before a transpose of them, which then moves whole groups."""
    moved = b.producer(codes, "transpose")
    if moved is not None:
        perm = attrs_of(moved).perm
        before = [high[perm.index(axis)] for axis in range(len(perm))]
        return b.like(moved, [_padded(b, moved.operands[0], tuple(before))])
    zero, none = b.scalar(0, dtype_of(codes).name), (0,) * len(high)
    result: Value = b.pad(codes, zero, low=none, high=high, mode="constant")
    return result


def _widened(b: Rewriter, f: Factors, channels: int) -> Factors:
    """The same sums over more channels, whose taps are zero."""
    image, taps = f.rows.codes, f.matrix.codes
    rank = len(dims_of(image))
    codes = _padded(b, image, (0,) * (rank - 1) + (channels,))
    wide = _padded(b, taps, (0, channels) + (0,) * (rank - 2))
    rows, matrix = replace(f.rows, codes=codes), replace(f.matrix, codes=wide)
    return Factors(rows, matrix, f.scale)
