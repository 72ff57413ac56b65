"""What iterations that run side by side read and write: none may see another's writes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class _Record:
    """Addresses that one op touched: in bytes, with the iteration that did it."""

    write: bool
    size: int
    addresses: list[Array] = field(default_factory=list)
    lanes: list[Array] = field(default_factory=list)

    def span(self) -> tuple[int, int]:
        low = min(int(a.min()) for a in self.addresses)
        return low, max(int(a.max()) for a in self.addresses) + self.size

    def units(self, size: int) -> tuple[Array, Array]:
        """(addresses, iterations) of parts of `size` bytes."""
        parts = np.arange(0, self.size, size)
        addresses = (np.concatenate(self.addresses)[:, None] + parts).reshape(-1)
        return addresses, np.repeat(np.concatenate(self.lanes), parts.size)


class Accesses:
    """Collects the accesses of iterations that are numbered by an array of this shape."""

    def __init__(self, *shape: int) -> None:
        self.lanes = np.arange(math.prod(shape)).reshape(shape)
        self.records: dict[object, _Record] = {}

    def note(
        self, key: object, buffer: Array, offset: Any, mask: Array | None, write: bool
    ) -> None:
        """One execution of an op: element offsets per iteration; mask: the iterations that run it.

        key: the op.
        """
        place = np.broadcast_to(np.asarray(offset), self.lanes.shape)
        chosen = slice(None) if mask is None else mask
        place, lanes = place[chosen].reshape(-1), self.lanes[chosen].reshape(-1)
        if not lanes.size:
            return
        base = buffer.__array_interface__["data"][0]
        record = self.records.setdefault(key, _Record(write, buffer.itemsize))
        record.addresses.append(base + place * buffer.itemsize)
        record.lanes.append(lanes)

    def check(self) -> None:
        """Raises RuntimeError where an iteration touches what another one writes."""
        spans = {key: record.span() for key, record in self.records.items()}
        for key, writer in self.records.items():
            if not writer.write:
                continue
            for other, record in self.records.items():
                apart = spans[key][1] <= spans[other][0] or spans[other][1] <= spans[key][0]
                if not apart and _conflict(writer, record):
                    raise RuntimeError(
                        "iterations are not independent: one touches what another one writes"
                    )


def _conflict(writer: _Record, other: _Record) -> bool:
    size = min(writer.size, other.size)
    addresses, lanes = writer.units(size)
    order = np.argsort(addresses, kind="stable")
    addresses, lanes = addresses[order], lanes[order]
    if ((addresses[1:] == addresses[:-1]) & (lanes[1:] != lanes[:-1])).any():
        return True
    found, mine = other.units(size)
    at = np.minimum(np.searchsorted(addresses, found), addresses.size - 1)
    return bool(((addresses[at] == found) & (lanes[at] != mine)).any())
