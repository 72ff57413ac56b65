"""Cuts the weights out of a serialised ONNX model, by scanning the protobuf wire format.

`scan` copies everything but large `raw_data` (and packed `float_data`, `double_data`, which have
the same bytes) into a small skeleton message, in which a token stands for each region. The onnx
package then parses the skeleton, and the weights stay where they are: in the mapped file.

Wire format: https://protobuf.dev/programming-guides/encoding; field numbers: onnx.proto.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cuvil.errors import ModelError

__all__ = ["Skeleton", "scan"]

CUT_ABOVE_BYTES = 1024
MAX_GRAPH_DEPTH = 32
MAX_FIELDS = 1 << 24
MAX_SKELETON_BYTES = (1 << 31) - 1  # protobuf's own limit for one message

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_NONCE_BYTES = 16
_TOKEN_BYTES = _NONCE_BYTES + 8

# Messages that can hold tensors: message -> field number -> message of that field.
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse_tensor"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse_tensor",
        23: "sparse_tensor",
    },
    "sparse_tensor": {1: "tensor", 2: "tensor"},
}
_TRAINING_INFO = 20  # of a model: nothing that inference needs
_DATA_TYPE, _RAW_DATA = 2, 9  # of a tensor
_FLOAT, _DOUBLE = 1, 11  # values of data_type
_PACKED = {4: _FLOAT, 10: _DOUBLE}  # float_data, double_data of a tensor


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A serialised ModelProto whose large regions are replaced by tokens."""

    message: bytes
    _nonce: bytes
    _cuts: tuple[memoryview, ...]

    def region(self, raw_data: bytes) -> memoryview | None:
        """The bytes that `raw_data` of a tensor of the skeleton stands for; None: itself."""
        if len(raw_data) != _TOKEN_BYTES or not raw_data.startswith(self._nonce):
            return None
        return self._cuts[int.from_bytes(raw_data[_NONCE_BYTES:], "little")]


def scan(data: memoryview, name: str) -> Skeleton:
    """Splits the serialised ModelProto `data`, of the file called `name`; copies no weights.

    ModelError with the offset in the file for anything that is not the wire format, for graphs
    nested deeper than 32, and for more than 16 million fields.
    """
    scanner = _Scanner(data, name)
    pieces: list[bytes | memoryview] = []
    size = scanner.message("model", 0, len(data), pieces)
    if size > MAX_SKELETON_BYTES:
        raise ModelError(f"{name}: {size} bytes beside the weights; a model may have 2 GiB of them")
    return Skeleton(b"".join(pieces), scanner.nonce, tuple(scanner.cuts))


class _Scanner:
    def __init__(self, data: memoryview, name: str) -> None:
        self.data = data
        self.name = name
        # Random, or a file could hold a token of its own and borrow another tensor's bytes.
        self.nonce = os.urandom(_NONCE_BYTES)
        self.cuts: list[memoryview] = []
        self.fields = 0
        self.graph_depth = 0

    def error(self, pos: int, reason: str) -> ModelError:
        return ModelError(f"{self.name}: not a readable ONNX model: {reason} at byte {pos}")

    def varint(self, pos: int, end: int) -> tuple[int, int]:
        """The value at `pos` and the position after it."""
        value = shift = 0
        start = pos
        while pos < end:
            byte = self.data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, pos
            shift += 7
            if shift >= 70:
                raise self.error(start, "a number longer than 10 bytes")
        raise self.error(start, "truncated number")

    def field(self, pos: int, end: int) -> tuple[int, int, int, int]:
        """Field number, wire type, start and end of the content of the field at `pos`."""
        self.fields += 1
        if self.fields > MAX_FIELDS:
            raise self.error(pos, f"more than {MAX_FIELDS} fields")
        tag, start = self.varint(pos, end)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise self.error(pos, f"field number {number}")
        if wire == _LENGTH:
            length, start = self.varint(start, end)
            stop = start + length
        elif wire == _VARINT:
            _, stop = self.varint(start, end)
        elif wire == _FIXED32:
            stop = start + 4
        elif wire == _FIXED64:
            stop = start + 8
        else:
            raise self.error(pos, f"wire type {wire} in field {number}")
        if stop > end:
            raise self.error(pos, f"field {number} needs {stop - start} bytes, {end - start} left")
        return number, wire, start, stop

    def message(self, kind: str, start: int, end: int, out: list[bytes | memoryview]) -> int:
        """Appends the message without its large regions to `out`; returns its new size."""
        children = _CHILDREN[kind]
        size, kept, pos = 0, start, start
        while pos < end:
            number, wire, first, stop = self.field(pos, end)
            dropped = kind == "model" and number == _TRAINING_INFO
            # A smaller message cannot hold a region worth cutting.
            large = wire == _LENGTH and number in children and stop - first > CUT_ABOVE_BYTES
            if large or dropped:
                size += self.keep(kept, pos, out)
                kept = stop
            if large:
                size += self.child(children[number], number, first, stop, out)
            pos = stop
        return size + self.keep(kept, end, out)

    def child(
        self, kind: str, number: int, start: int, end: int, out: list[bytes | memoryview]
    ) -> int:
        slot = len(out)
        out.append(b"")
        if kind == "tensor":
            size = self.tensor(start, end, out)
        elif kind == "graph":
            size = self.graph(start, end, out)
        else:
            size = self.message(kind, start, end, out)
        out[slot] = _varint(number << 3 | _LENGTH) + _varint(size)
        return len(out[slot]) + size

    def graph(self, start: int, end: int, out: list[bytes | memoryview]) -> int:
        self.graph_depth += 1
        if self.graph_depth > MAX_GRAPH_DEPTH:
            raise self.error(start, f"graphs nested deeper than {MAX_GRAPH_DEPTH}")
        size = self.message("graph", start, end, out)
        self.graph_depth -= 1
        return size

    def tensor(self, start: int, end: int, out: list[bytes | memoryview]) -> int:
        """As `message`, for a tensor: a token takes the place of its one large data field."""
        data_type = count = 0
        content = (0, 0, 0, 0)
        pos = start
        while pos < end:
            number, wire, first, stop = self.field(pos, end)
            if number == _DATA_TYPE and wire == _VARINT:
                data_type, _ = self.varint(first, stop)
            elif number == _RAW_DATA or number in _PACKED:
                count += 1
                content = (number if wire == _LENGTH else 0, pos, first, stop)
            pos = stop
        number, pos, first, stop = content
        mapped = number == _RAW_DATA or _PACKED.get(number, -1) == data_type
        if count != 1 or not mapped or stop - first <= CUT_ABOVE_BYTES:
            return self.keep(start, end, out)
        before = self.keep(start, pos, out)
        return before + self.cut(first, stop, out) + self.keep(stop, end, out)

    def cut(self, start: int, end: int, out: list[bytes | memoryview]) -> int:
        index = len(self.cuts).to_bytes(_TOKEN_BYTES - _NONCE_BYTES, "little")
        self.cuts.append(self.data[start:end])
        field = _varint(_RAW_DATA << 3 | _LENGTH) + _varint(_TOKEN_BYTES) + self.nonce + index
        out.append(field)
        return len(field)

    def keep(self, start: int, end: int, out: list[bytes | memoryview]) -> int:
        if start < end:
            out.append(self.data[start:end])
        return end - start


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
