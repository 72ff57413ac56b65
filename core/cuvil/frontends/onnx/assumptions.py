"""Bounds of input symbols that make a graph's extents sound; a run checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuvil.ir.dims import Dim, evaluate

__all__ = ["least_symbol", "widest"]

_FAR = 1 << 20
_LOOK_AHEAD = 64

Bounds = Mapping[str, tuple[int, int | None]]


def least_symbol(dim: Dim, name: str, least: int) -> int | None:
    """The smallest value of the only symbol from which on `dim` >= least; None: not found.

    Extents grow with the extents they come from; where one does not, nothing is found.
    """
    if evaluate(dim, {name: _FAR}) < least:
        return None
    low, high = -1, _FAR
    while high - low > 1:
        middle = (low + high) // 2
        if evaluate(dim, {name: middle}) >= least:
            high = middle
        else:
            low = middle
    ahead = range(high, high + _LOOK_AHEAD)
    return high if all(evaluate(dim, {name: n}) >= least for n in ahead) else None


def widest(branches: Sequence[Bounds]) -> dict[str, tuple[int, int | None]]:
    """What holds whichever branch runs: for a symbol, bounds that all branches lie in."""
    common: dict[str, tuple[int, int | None]] = {}
    for name in set.intersection(*(set(b) for b in branches)):
        lows, highs = zip(*(b[name] for b in branches), strict=True)
        known = [h for h in highs if h is not None]
        common[name] = (min(lows), max(known) if len(known) == len(highs) else None)
    return common
