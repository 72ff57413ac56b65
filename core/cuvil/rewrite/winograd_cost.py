"""Which convolutions are cheaper by Winograd's way, and by which tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuvil.ir.dims import Dim

SIZES = (4, 6, 8)  # products along an axis for which there are points
LEAST_CHANNELS = 16
GAIN = 0.8  # of the plain sum's cost: with less to win, rounding is not worth it
_LARGE = 8  # such tiles round up to four times worse than the next smaller ones
_LARGE_GAIN = 0.85  # of the cost of smaller tiles: with less to win, that is not worth it
_MOST_SUMMED = (math.inf, 256, 32)  # channels by large axes: networks of them stay exact enough
_IMAGE_COST = 6  # multiply-adds in the time of transforming an element of a tile along an axis
_RESULT_COST = 3
_STREAM_ROWS = 16  # products with fewer rows wait for their weights from memory
_GUESSED = 0.8  # for the transforms, where the number of tiles is not known
_MOST_FREE_WEIGHTS = 1 << 22  # bytes, where the number of tiles is not known


def pixels_of(dims: Sequence[Dim]) -> tuple[Dim, Dim, Dim]:
    """Images, rows and columns of an image with one or two spatial axes, channels last."""
    return (dims[0], dims[1], dims[2]) if len(dims) == 4 else (dims[0], 1, dims[1])


def taps_of(dims: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a filter with one or two spatial axes."""
    return (dims[0], dims[1]) if len(dims) == 2 else (1, dims[0])


def frequencies(m: tuple[int, int], taps: tuple[int, int]) -> int:
    """Products per tile, channel and output channel."""
    return math.prod(k + r - 1 for k, r in zip(m, taps, strict=True))


def tiles_of(taps: tuple[int, int], channels: int, n: int) -> list[tuple[int, int]]:
    """Rows and columns of the result per tile, alike in size, that there are points for. None where
    channels are too few for products of matrices, nor such as round too much for so many."""
    if min(channels, n) < LEAST_CHANNELS or taps == (1, 1):
        return []
    every = [(rows, columns) for rows in _sides(taps[0]) for columns in _sides(taps[1])]
    alike = [m for m in every if 1 in m or abs(m[0] + taps[0] - m[1] - taps[1]) <= 2]
    return [m for m in alike if channels <= _MOST_SUMMED[_large_axes(m, taps)]]


def choose(
    pixels: tuple[Dim, Dim, Dim],
    taps: tuple[int, int],
    channels: int,
    n: int,
    share: float = GAIN,
) -> tuple[int, int] | None:
    """Rows and columns of the result per tile; None where the cost is not below that share of a
    plain sum's.

    pixels: images, rows and columns of the result; images that only a run knows count as one.
    """
    tiles = tiles_of(taps, channels, n)
    if not tiles:
        return None
    _, rows, columns = pixels
    images = pixels[0] if isinstance(pixels[0], int) else 1
    if not (isinstance(rows, int) and isinstance(columns, int)):
        if 1 in taps:
            return None  # signals may be short, and have less to win
        small = [m for m in tiles if not _large_axes(m, taps)] or tiles
        few = [m for m in small if 4 * frequencies(m, taps) * channels * n <= _MOST_FREE_WEIGHTS]
        best = max(few, default=min(small))
        products = frequencies(best, taps) / (math.prod(best) * math.prod(taps))
        return best if products < _GUESSED * share else None
    plain = max(images * rows * columns, _STREAM_ROWS) * math.prod(taps) * channels * n
    costs = {
        m: _cost(m, taps, images * -(-rows // m[0]) * -(-columns // m[1]), channels, n)
        for m in tiles
    }
    best = min(costs, key=lambda m: costs[m] * (1 if _large_axes(m, taps) else _LARGE_GAIN))
    return best if costs[best] < share * plain else None


def _large_axes(m: tuple[int, int], taps: tuple[int, int]) -> int:
    return sum(k + r - 1 == _LARGE for k, r in zip(m, taps, strict=True))


def _sides(taps: int) -> list[int]:
    """Results per side of a tile, for so many taps."""
    return [1] if taps == 1 else [s + 1 - taps for s in SIZES if s + 1 - taps > 1]


def _cost(m: tuple[int, int], taps: tuple[int, int], tiles: int, channels: int, n: int) -> int:
    """In multiply-adds; reading the weights from memory hides behind the products."""
    products = max(tiles, _STREAM_ROWS) * channels * n
    axes = sum(r > 1 for r in taps)
    transforms = axes * tiles * (_IMAGE_COST * channels + _RESULT_COST * n)
    return frequencies(m, taps) * (products + transforms)
