"""Large constants told apart by samples first, so that none has to be read whole to be known."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["LARGE", "same_bytes", "sampled", "sha256"]

LARGE = 1 << 20
"""Bytes from which on a constant is known by samples."""

_PIECES, _PIECE_BYTES = 128, 64
_COMPARED = 8 << 20


def sampled(data: memoryview) -> bytes:
    """Pieces of `data`, evenly spaced, the first and last bytes among them. data: flat bytes, at
    least `LARGE`."""
    step = (len(data) - _PIECE_BYTES) / (_PIECES - 1)
    starts = [int(i * step) for i in range(_PIECES - 1)] + [len(data) - _PIECE_BYTES]
    return b"".join(data[start : start + _PIECE_BYTES] for start in starts)


def same_bytes(a: memoryview, b: memoryview) -> bool:
    """Whether two flat buffers hold the same; buffers at one address are not read."""
    x, y = np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8)
    if x.size != y.size or x.ctypes.data == y.ctypes.data:
        return x.size == y.size
    parts = range(0, x.size, _COMPARED)
    return all(np.array_equal(x[i : i + _COMPARED], y[i : i + _COMPARED]) for i in parts)


def sha256(data: memoryview) -> bytes:
    """The digest of all bytes; most cpus have instructions for it. Leaves other threads running."""
    return hashlib.sha256(data).digest()
