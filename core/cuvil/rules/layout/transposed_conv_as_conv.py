"""Transposed convolutions whose windows overlap."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import literal
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule, sample
from cuvil.rewrite.values import attrs_of, dims_of, rank_of

_LAST = {"dilations": (1, 1), "layout": "channels_last"}


@rule(
    "conv_transpose",
    example=case(
        lambda b, x: b.conv_transpose(
            x,
            b.const(sample(3, 4, 3, 3)),
            strides=(2, 2),
            pads=(1, 0, 1, 1),
            output_padding=(1, 0),
            **_LAST,
        ),
        x="[B, 5, W, 3] f32",
    ),
    near_miss=case(
        lambda b, x: b.conv_transpose(
            x, b.const(sample(4, 2, 3, 3)), strides=(2, 2), pads=(0,) * 4, groups=2, **_LAST
        ),
        x="[B, 5, W, 4] f32",
    ),
    tolerance=1e-5,
)
def transposed_conv_as_conv(b: Rewriter, op: Operation) -> Value | None:
    """The convolution with the kernel turned round, of the image with strides - 1 zeros between
    its pixels; pads are what the window then reaches over the edge."""
    a, (x, w) = attrs_of(op), op.operands[:2]
    n = rank_of(x) - 2
    extra = tuple(a.output_padding or (0,) * n)
    taps = dims_of(w)[2:]
    static = all(isinstance(d, int) for d in (*taps, *a.pads))
    if a.layout != "channels_last" or a.groups != 1 or len(op.operands) != 2 or not static:
        return None
    if taps == tuple(a.strides) and not any(a.pads) and not any(extra) and n == 2:
        return None  # see `transposed_conv_as_product`
    reach = [d * (literal(k) - 1) for d, k in zip(a.dilations, taps, strict=True)]
    low = [r - p for r, p in zip(reach, a.pads[:n], strict=True)]
    high = [r - p + e for r, p, e in zip(reach, a.pads[n:], extra, strict=True)]
    spread = _between(b, x, a.strides)
    padded = b.pad(spread, b.scalar(0, x), low=(0, *low, 0), high=(0, *high, 0), mode="constant")
    return b.conv(
        padded,
        _turned(b, w, n),
        strides=(1,) * n,
        dilations=a.dilations,
        pads=(0,) * 2 * n,
        layout="channels_last",
    )


def _between(b: Rewriter, x: Value, strides: Sequence[int]) -> Value:
    """strides[i] - 1 zeros after every pixel of axis i but the last."""
    dims = dims_of(x)
    inner = [d for s in dims[1:-1] for d in (s, 1)]
    gaps = [g for s in strides for g in (0, s - 1)]
    apart = b.reshape(x, dims=(dims[0], *inner, dims[-1]))
    filled = b.pad(
        apart, b.scalar(0, x), low=(0,) * (len(gaps) + 2), high=(0, *gaps, 0), mode="constant"
    )
    wide = [d * s for d, s in zip(dims[1:-1], strides, strict=True)]
    whole = b.reshape(filled, dims=(dims[0], *wide, dims[-1]))
    cut = [(d - 1) * s + 1 for d, s in zip(dims[1:-1], strides, strict=True)]
    zeros = (0,) * len(dims)
    return b.slice(whole, starts=zeros, steps=(1,) * len(dims), dims=(dims[0], *cut, dims[-1]))


def _turned(b: Rewriter, w: Value, n: int) -> Value:
    """[I, O, k...] as [O, I, k...] with every kernel axis reversed."""
    swapped = b.transpose(w, perm=(1, 0, *range(2, 2 + n)))
    dims = dims_of(swapped)
    starts = (0, 0, *[d - 1 for d in dims[2:]])
    return b.slice(swapped, starts=starts, steps=(1, 1, *[-1] * n), dims=dims)
