"""Values in the files that `call_model.c` reads and writes: its text says what they hold."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cuvil.ir.dtypes import by_abi, from_numpy

# A tensor, a sequence of them, or an optional that is not there.
Value = np.ndarray | list[np.ndarray] | None

_TENSOR, _NONE, _SEQUENCE = range(3)
_HEAD = struct.Struct("=BBBx")
_COUNT = struct.Struct("=I")
_LONG = struct.Struct("=q")


def write_values(path: Path, values: Sequence[Value]) -> None:
    """Writes values as a request."""
    with path.open("wb") as file:
        file.write(_COUNT.pack(len(values)))
        for value in values:
            _write(file, value)


def read_values(path: Path) -> list[Value]:
    """The values of a response."""
    with path.open("rb") as file:
        return [_read(file) for _ in range(_COUNT.unpack(file.read(_COUNT.size))[0])]


def _write(file: BinaryIO, value: Value) -> None:
    if value is None:
        file.write(_HEAD.pack(_NONE, 0, 0))
    elif isinstance(value, list):
        file.write(_HEAD.pack(_SEQUENCE, 0, 1) + _LONG.pack(len(value)))
        for item in value:
            _write(file, item)
    else:
        file.write(_HEAD.pack(_TENSOR, from_numpy(value.dtype).abi, value.ndim))
        file.write(struct.pack(f"={value.ndim}q", *value.shape))
        file.write(_LONG.pack(value.nbytes))
        file.write(_strings(value) if from_numpy(value.dtype).is_string else value.tobytes())


def _strings(value: np.ndarray) -> bytes:
    texts = [str(text).encode() for text in value.reshape(-1)]
    return b"".join(_LONG.pack(len(text)) + text for text in texts)


def _read(file: BinaryIO) -> Value:
    kind, dtype, rank = _HEAD.unpack(file.read(_HEAD.size))
    if kind == _NONE:
        return None
    if kind == _SEQUENCE:
        return [_read(file) for _ in range(_long(file))]  # type: ignore[misc]
    shape = struct.unpack(f"={rank}q", file.read(8 * rank))
    size = _long(file)
    element = by_abi(dtype)
    if not element.is_string:
        return np.frombuffer(file.read(size), element.numpy).reshape(shape)
    array = np.empty(shape, object)
    array.reshape(-1)[:] = [file.read(_long(file)).decode() for _ in range(array.size)]
    return array


def _long(file: BinaryIO) -> int:
    return int(_LONG.unpack(file.read(_LONG.size))[0])
