"""The constants that string primitives read: tables of bytes, as the runtime's string_functions.c
reads them too. All numbers are little endian.

A list of strings: i64 count, then count + 1 i64 offsets into the bytes behind them. Case mapping:
u32 count, then pairs (u32 from, u32 to) of code points in ascending order. A pattern: u32 states,
u32 classes, the class of every byte (256 bytes), one byte for every state (1: it accepts) padded to
a multiple of 4, then u32 [states, classes] that follow; state 0 never accepts, 1 is the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["Automaton", "automaton_table", "case_table", "read_automaton", "read_case",
           "read_strings", "string_table"]  # fmt: skip

Array = np.ndarray[Any, Any]

_CODE_POINTS = 0x110000
_SURROGATES = range(0xD800, 0xE000)


def string_table(items: Iterable[str]) -> Array:
    """A list of strings as a table; UnicodeEncodeError for a lone surrogate."""
    parts = [item.encode() for item in items]
    offsets = np.cumsum([0, *map(len, parts)], dtype="<i8")
    head = np.array([len(parts)], "<i8").tobytes() + offsets.tobytes()
    return np.frombuffer(head + b"".join(parts), np.uint8)


def read_strings(table: Array) -> list[str]:
    """The strings of a table."""
    data = table.tobytes()
    count = int(np.frombuffer(data, "<i8", 1)[0])
    offsets = np.frombuffer(data, "<i8", count + 1, 8)
    text = data[8 * (count + 2) :]
    return [text[a:b].decode() for a, b in pairwise(offsets.tolist())]


@lru_cache(maxsize=2)
def case_table(upper: bool) -> Array:
    """The simple case mapping of Unicode: code points whose upper or lower case is one other."""
    pairs = []
    for code in range(_CODE_POINTS):
        if code not in _SURROGATES:
            mapped = chr(code).upper() if upper else chr(code).lower()
            if len(mapped) == 1 and ord(mapped) != code:
                pairs.append((code, ord(mapped)))
    data = np.array([len(pairs), *np.ravel(pairs)], "<u4")
    return data.view(np.uint8)


def read_case(table: Array) -> dict[int, int]:
    """The mapping of a table."""
    rows = np.frombuffer(table.tobytes(), "<u4", offset=4).reshape(-1, 2)
    return {int(a): int(b) for a, b in rows}


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton on bytes. follow: [state, class]; see the module's text."""

    classes: Array
    accepts: Array
    follow: Array

    def matches(self, text: str) -> bool:
        """Whether it accepts the UTF-8 bytes of all of `text`."""
        state = 1
        for byte in text.encode():
            state = int(self.follow[state, self.classes[byte]])
            if not state:
                return False
        return bool(self.accepts[state])

    def longest(self, data: bytes, start: int) -> int:
        """How many bytes from `start` on the longest match has; 0: none, or an empty one."""
        state, longest = 1, 0
        for k in range(start, len(data)):
            state = int(self.follow[state, self.classes[data[k]]])
            if not state:
                break
            if self.accepts[state]:
                longest = k + 1 - start
        return longest


def automaton_table(a: Automaton) -> Array:
    """An automaton as a table."""
    states, classes = a.follow.shape
    accepts = a.accepts.astype(np.uint8).tobytes()
    parts: Sequence[bytes] = (
        np.array([states, classes], "<u4").tobytes(),
        a.classes.astype(np.uint8).tobytes(),
        accepts + bytes(-len(accepts) % 4),
        a.follow.astype("<u4").tobytes(),
    )
    return np.frombuffer(b"".join(parts), np.uint8)


def read_automaton(table: Array) -> Automaton:
    """The automaton of a table."""
    data = table.tobytes()
    states, classes = (int(n) for n in np.frombuffer(data, "<u4", 2))
    accepts = np.frombuffer(data, np.uint8, states, 264)
    follow = np.frombuffer(data, "<u4", states * classes, 264 + states + -states % 4)
    return Automaton(
        np.frombuffer(data, np.uint8, 256, 8), accepts, follow.reshape(states, classes)
    )
