"""Contractions and convolutions for cpus without vectors: panels that hardly pad the weights."""

from __future__ import annotations

from cuvil.ir.dims import Dim
from cuvil.plan.templates.contract import (
    DTYPES,
    build,
    matchers,
    reads_in_place,
    reads_through,
    writes_in_place,
)

__all__ = [
    "DTYPES",
    "MATCHERS",
    "build",
    "panel_of",
    "reads_in_place",
    "reads_through",
    "writes_in_place",
]

_WIDEST = 8  # as many sums share a load of A, and leave room for other values in 16 registers


def panel_of(columns: Dim) -> int:
    """The width of at most 8 columns that pads the fewest; the widest of these."""
    if not isinstance(columns, int) or columns < 1:
        return _WIDEST
    widths = range(min(_WIDEST, columns), 0, -1)
    # Of equal ones the first, and half of the widest is the least that is worth its loops.
    return min((w for w in widths if 2 * w >= widths[0]), key=lambda w: -(-columns // w) * w)


MATCHERS = matchers(panel_of)
