"""Convolutions for which Winograd's way, on floats, is faster than other element types."""

from __future__ import annotations

from cuvil.ir.names import Operation
from cuvil.rewrite.values import attrs_of, dims_of
from cuvil.rewrite.winograd_cost import choose, pixels_of, taps_of


def by_tiles(op: Operation, share: float) -> bool:
    """Whether its cost is below that share of a plain sum's on floats."""
    a, result = attrs_of(op), dims_of(op.results[0])
    sizes = [d for d in dims_of(op.operands[1]) if isinstance(d, int)]
    if a.groups > 1 or any(s != 1 for s in (*a.strides, *a.dilations)):
        return False
    if len(sizes) != len(dims_of(op.operands[1])) or len(sizes) > 4:
        return False
    n, channels, *taps = sizes
    return choose(pixels_of(result), taps_of(taps), channels, n, share) is not None
