"""Regular expressions as automata on the bytes of UTF-8, made when a model is compiled.

A state of the automaton is a set of places in the pattern together with what the byte before was,
so that assertions about the bytes on both sides of a place can be decided when the next one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cuvil.ir.string_tables import Automaton
from cuvil.ops.regex_classes import PERL, Ranges
from cuvil.ops.regex_syntax import (
    Alt,
    Cat,
    Look,
    Node,
    PatternError,
    Repeat,
    UnsupportedPattern,
    parse,
)

__all__ = ["PatternError", "UnsupportedPattern", "compile_pattern"]

MOST_PLACES = 20_000  # of a pattern written out
MOST_STATES = 8_192  # of its automaton

_BEGIN, _END, _NEWLINE, _WORD, _OTHER = range(5)  # what lies on a side of a place
_WORD_BYTES = frozenset(b for low, high in PERL["w"] for b in range(low, high + 1))

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "begin": lambda before, after: before == _BEGIN,
    "end": lambda before, after: after == _END,
    "line_begin": lambda before, after: before in (_BEGIN, _NEWLINE),
    "line_end": lambda before, after: after in (_END, _NEWLINE),
    "word": lambda before, after: (before == _WORD) != (after == _WORD),
    "not_word": lambda before, after: (before == _WORD) == (after == _WORD),
}


def compile_pattern(pattern: str) -> Automaton:
    """The automaton that accepts the strings which match a pattern in full.

    PatternError for what is no pattern of RE2's syntax, UnsupportedPattern for what is not
    implemented or would be too large.
    """
    places = _Places()
    end = places.new()
    start = places.add(parse(pattern), end)
    return _Subsets(places, start, end).run()


@dataclass
class _Places:
    """Places in a pattern: free moves (with the assertion they need) and moves by a byte."""

    free: list[list[tuple[int, str]]] = field(default_factory=list)
    by_byte: list[list[tuple[int, int, int]]] = field(default_factory=list)

    def new(self) -> int:
        if len(self.free) >= MOST_PLACES:
            raise UnsupportedPattern(f"a pattern of more than {MOST_PLACES} places")
        self.free.append([])
        self.by_byte.append([])
        return len(self.free) - 1

    def add(self, node: Node, after: int) -> int:
        """Where to begin so that what matches the node leads to `after`."""
        if isinstance(node, Cat):
            for part in reversed(node.parts):
                after = self.add(part, after)
            return after
        if isinstance(node, Repeat):
            return self.repeat(node, after)
        start = self.new()
        if isinstance(node, Alt):
            self.free[start] += [(self.add(part, after), "") for part in node.parts]
        elif isinstance(node, Look):
            self.free[start].append((after, node.kind))
        else:
            self.bytes_of(node.ranges, start, after)
        return start

    def repeat(self, node: Repeat, after: int) -> int:
        if node.most is None:
            start = self.new()
            self.free[start] += [(self.add(node.part, start), ""), (after, "")]
        else:
            start, end = after, after
            for _ in range(node.most - node.least):
                again = self.new()
                self.free[again] += [(self.add(node.part, start), ""), (end, "")]
                start = again
        for _ in range(node.least):
            start = self.add(node.part, start)
        return start

    def bytes_of(self, ranges: Ranges, start: int, after: int) -> None:
        """Moves from start to after by the bytes of one code point. Equal ends are shared."""
        known: dict[tuple[tuple[int, int], ...], int] = {(): after}
        for low, high in ranges:
            for sequence in utf8_ranges(low, high):
                self.chain(sequence, start, known)

    def chain(
        self,
        sequence: Sequence[tuple[int, int]],
        start: int,
        known: dict[tuple[tuple[int, int], ...], int],
    ) -> None:
        for k in range(len(sequence) - 1, 0, -1):
            rest = tuple(sequence[k:])
            if rest not in known:
                known[rest] = self.new()
                self.by_byte[known[rest]].append((*sequence[k], known[rest[1:]]))
        self.by_byte[start].append((*sequence[0], known[tuple(sequence[1:])]))


def utf8_ranges(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    """Sequences of byte ranges that are the UTF-8 of all code points from low to high but for
    surrogates, which no text has."""
    for first, last in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF),
                        (0x10000, 0x10FFFF)):  # fmt: skip
        if max(low, first) <= min(high, last):
            yield from _same_length(max(low, first), min(high, last))


def _same_length(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    a, b = chr(low).encode(), chr(high).encode()
    for k in range(1, len(a)):
        unit = 1 << 6 * (len(a) - k)  # code points that share the first k bytes
        if low // unit != high // unit:
            if low % unit:
                yield from _same_length(low, low | (unit - 1))
                yield from _same_length((low | (unit - 1)) + 1, high)
                return
            if (high + 1) % unit:
                yield from _same_length(low, high - high % unit - 1)
                yield from _same_length(high - high % unit, high)
                return
    yield list(zip(a, b, strict=True))


@dataclass
class _Subsets:
    """The subset construction. A state: places without their free moves, and the side before."""

    places: _Places
    start: int
    end: int

    def __post_init__(self) -> None:
        looks = {kind for moves in self.places.free for _, kind in moves if kind}
        self.lines = any(kind.startswith("line") for kind in looks)
        self.words = any(kind.endswith("word") for kind in looks)
        edges = {0, 256}
        for moves in self.places.by_byte:
            for low, high, _ in moves:
                edges |= {low, high + 1}
        if self.lines:
            edges |= {10, 11}
        if self.words:
            edges |= {e for low, high in PERL["w"] for e in (low, high + 1)}
        self.edges = sorted(edges)

    def side(self, byte: int) -> int:
        """What a byte is to assertions that the pattern has."""
        if self.lines and byte == 10:
            return _NEWLINE
        return _WORD if self.words and byte in _WORD_BYTES else _OTHER

    def reached(self, state: frozenset[int], before: int, after: int) -> set[int]:
        """The places that free moves lead to."""
        found, waiting = set(state), list(state)
        while waiting:
            for target, look in self.places.free[waiting.pop()]:
                if target not in found and (not look or _HOLDS[look](before, after)):
                    found.add(target)
                    waiting.append(target)
        return found

    def run(self) -> Automaton:
        nothing = (frozenset[int](), _OTHER)
        first = (frozenset({self.start}), _BEGIN)
        numbers = {nothing: 0, first: 1}
        order, rows, accepts = [nothing, first], [], []
        for state, before in order:
            if len(order) > MOST_STATES:
                raise UnsupportedPattern(f"a pattern of more than {MOST_STATES} states")
            accepts.append(self.end in self.reached(state, before, _END))
            sides: dict[int, set[int]] = {}
            row = []
            for byte in self.edges[:-1]:
                side = self.side(byte)
                if side not in sides:
                    sides[side] = self.reached(state, before, side)
                after = frozenset(
                    target
                    for place in sides[side]
                    for low, high, target in self.places.by_byte[place]
                    if low <= byte <= high
                )
                following = (after, side if after else _OTHER)
                if following not in numbers:
                    numbers[following] = len(order)
                    order.append(following)
                row.append(numbers[following])
            rows.append(row)
        classes = np.zeros(256, np.uint8)
        classes[self.edges[1:-1]] = 1
        classes = np.cumsum(classes).astype(np.uint8)
        return Automaton(classes, np.array(accepts, np.uint8), np.array(rows, np.uint32))
