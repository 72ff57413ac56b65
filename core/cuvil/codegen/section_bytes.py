"""How the bytes of a section get into an object file, of either format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO


def write_chunks(
    out: BinaryIO, offset: int, name: str, size: int, chunks: Iterable[bytes | memoryview]
) -> None:
    """Writes a section at `offset`, after zeros up to there. ValueError when the chunks are not
    `size` bytes in all."""
    pad(out, offset)
    written = 0
    for chunk in chunks:
        # Buffered files split what one system call does not take, which is about 2 GiB.
        written += out.write(chunk)
        if written > size:
            break
    if written != size:
        raise ValueError(f"section {name} of {size} bytes was given {written}")


def pad(out: BinaryIO, offset: int) -> None:
    """Zeros up to `offset`."""
    out.write(bytes(offset - out.tell()))
