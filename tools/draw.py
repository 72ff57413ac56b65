"""Pictures made of text: bars and dots."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

BARS = "▁▂▃▄▅▆▇█"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character by row and column."""


def bars(values: Iterable[float]) -> str:
    """One bar for each value in [0, 1], the taller the larger."""
    return "".join(BARS[min(7, max(0, int(value * 8)))] for value in values)


def dots(ink: np.ndarray) -> list[str]:
    """Lines of braille characters for bool [height, width]: 4 rows and 2 columns each."""
    height, width = ink.shape
    padded = np.zeros((-(-height // 4) * 4, -(-width // 2) * 2), int)
    padded[:height, :width] = ink
    cells = padded.reshape(padded.shape[0] // 4, 4, padded.shape[1] // 2, 2)
    codes = (cells * np.array(_DOTS)[None, :, None, :]).sum(axis=(1, 3))
    lines = ("".join(chr(0x2800 + code) for code in row) for row in codes)
    return [line.rstrip(chr(0x2800)) for line in lines]
