"""The file of weights beside an artefact: `cuvil_weights_header`, then data, 64-byte aligned.

The same in memory, for an engine of this process.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from cuvil.codegen.abi import ABI_VERSION, ARENA_ALIGN, MAGIC

_HEADER = struct.Struct("<II32sQ16x")


def write_weights(
    path: str | os.PathLike[str],
    build_id: bytes,
    size: int,
    chunks: Iterable[bytes | memoryview],
) -> None:
    """Streams the weights to `path`, by a temporary file and a rename.

    Raises ValueError, and leaves no file, when the chunks do not add up to `size`.
    """
    temporary = Path(f"{os.fspath(path)}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as out:
            out.write(_header(build_id, size))
            written = sum(out.write(chunk) for chunk in chunks)
            if written != size:
                raise ValueError(f"weights of {size} bytes came as {written}")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def weights_image(build_id: bytes, size: int, put: Callable[[np.ndarray], None]) -> np.ndarray:
    """What `write_weights` writes, in memory of its own: uint8, aligned as the runtime wants it.

    put: writes the weights into an array of `size` zeros.
    """
    header = _header(build_id, size)
    # Fresh memory of the system's is zeros, and in huge pages, which are soon mapped.
    memory = np.zeros(len(header) + size + ARENA_ALIGN, np.uint8)
    start = -memory.ctypes.data % ARENA_ALIGN
    image = memory[start : start + len(header) + size]
    image[: len(header)] = np.frombuffer(header, np.uint8)
    put(image[len(header) :])
    return image


def _header(build_id: bytes, size: int) -> bytes:
    header = _HEADER.pack(MAGIC, ABI_VERSION, build_id, size)
    return header.ljust(-(-len(header) // ARENA_ALIGN) * ARENA_ALIGN, b"\0")
