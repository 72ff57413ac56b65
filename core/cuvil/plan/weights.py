"""The bytes of a plan's weights: as a stream for files, or straight into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cuvil.ir.pool import Pool

__all__ = ["fill", "stream"]

Rows = Sequence[tuple[str, int]]
"""(key, byte offset), by rising offset."""

_THREADS = 8


def stream(pool: Pool, rows: Rows, size: int) -> Iterator[memoryview]:
    """All `size` bytes in order, zeros between constants; a thread makes the next constant while
    this one is used, so two are in memory at a time."""
    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(pool.data, rows[0][0]) if rows else None
        at = 0
        for i, (_, offset) in enumerate(rows):
            assert ahead is not None
            data = ahead.result()
            ahead = thread.submit(pool.data, rows[i + 1][0]) if i + 1 < len(rows) else None
            if offset > at:
                yield memoryview(bytes(offset - at))
            yield data
            at = offset + data.nbytes
        if size > at:
            yield memoryview(bytes(size - at))


def fill(target: np.ndarray, pool: Pool, rows: Rows) -> None:
    """Writes the constants to their places in `target`, uint8; what lies between stays as it is.

    Uses as many threads as there are cpus, at most eight.
    """

    def place(row: tuple[str, int]) -> None:
        data = np.frombuffer(pool.data(row[0]), np.uint8)
        target[row[1] : row[1] + data.size] = data

    with ThreadPoolExecutor(min(_THREADS, len(os.sched_getaffinity(0)))) as threads:
        for _ in threads.map(place, rows):
            pass
