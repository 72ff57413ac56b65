"""The file of weights beside an artefact: `cuvil_weights_header`, then data, 64-byte aligned."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path

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
            header = _HEADER.pack(MAGIC, ABI_VERSION, build_id, size)
            out.write(header.ljust(-(-len(header) // ARENA_ALIGN) * ARENA_ALIGN, b"\0"))
            written = sum(out.write(chunk) for chunk in chunks)
            if written != size:
                raise ValueError(f"weights of {size} bytes came as {written}")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
