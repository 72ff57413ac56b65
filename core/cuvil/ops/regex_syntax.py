"""Regular expressions in RE2's syntax as trees. Only matching counts here: greedy or not, captured
or not is read and forgotten.

A tree is a `Set` of code points, a `Look` (an assertion), `Cat`, `Alt` or `Repeat`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuvil.ops import regex_classes as classes
from cuvil.ops.regex_classes import Ranges

__all__ = ["Alt", "Cat", "Look", "Node", "PatternError", "Repeat", "Set", "UnsupportedPattern",
           "parse"]  # fmt: skip

MOST_REPEATS = 1000  # as in RE2
MOST_DEPTH = 200


class PatternError(ValueError):
    """No regular expression."""


class UnsupportedPattern(ValueError):
    """Of another syntax than RE2's, or not implemented."""


@dataclass(frozen=True)
class Set:
    """One code point of these ranges."""

    ranges: Ranges


@dataclass(frozen=True)
class Look:
    """An assertion: 'begin', 'end', 'line_begin', 'line_end', 'word' (a boundary), 'not_word'."""

    kind: str


@dataclass(frozen=True)
class Cat:
    """One after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    """Any one."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """From least to most times (None: without end)."""

    part: Node
    least: int
    most: int | None


Node = Set | Look | Cat | Alt | Repeat

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_LOOKS = {"A": "begin", "z": "end", "b": "word", "B": "not_word"}
_LOOK_AROUND = {"?=": "look-ahead", "?!": "look-ahead", "?<=": "look-behind", "?<!": "look-behind",
                "?P=": "a backreference", "?>": "an atomic group", "?(": "a condition",
                "?#": "a comment"}  # fmt: skip
_FLAGS = "imsU"


def parse(pattern: str) -> Node:
    """The tree of a pattern. PatternError or UnsupportedPattern say what is wrong or missing."""
    parser = _Parser(pattern)
    node = parser.alternatives(frozenset(), 0)
    if parser.rest:
        raise PatternError("an unmatched )")
    return node


class _Parser:
    """at: how much of the pattern has been read."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags: frozenset[str] = frozenset()

    @property
    def rest(self) -> str:
        return self.pattern[self.at :]

    def starts(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        """Whether `text` comes next; then it is read."""
        found = self.starts(text)
        self.at += len(text) * found
        return found

    def next(self) -> str:
        if self.at >= len(self.pattern):
            raise PatternError("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def until(self, end: str, what: str) -> str:
        place = self.pattern.find(end, self.at)
        if place < 0:
            raise PatternError(f"{what} without {end}")
        text, self.at = self.pattern[self.at : place], place + len(end)
        return text

    def alternatives(self, flags: frozenset[str], depth: int) -> Node:
        """Up to an unmatched ) or the end; flags hold to there."""
        if depth > MOST_DEPTH:
            raise UnsupportedPattern(f"more than {MOST_DEPTH} groups inside each other")
        outer, self.flags = self.flags, flags
        parts = [self.sequence(depth)]
        while self.take("|"):
            parts.append(self.sequence(depth))
        self.flags = outer
        return parts[0] if len(parts) == 1 else Alt(tuple(parts))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.rest and not self.starts("|") and not self.starts(")"):
            if self.take("\\Q"):
                end = self.pattern.find("\\E", self.at)
                text = self.rest if end < 0 else self.pattern[self.at : end]
                self.at += len(text) + 2 * (end >= 0)
                parts += [self.literal(c) for c in text]
                continue
            atom = self.atom(depth)
            if atom is not None:
                parts.append(self.repeated(atom))
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def literal(self, char: str) -> Node:
        return self.of_ranges(((ord(char), ord(char)),))

    def of_ranges(self, ranges: Ranges) -> Node:
        return Set(classes.folded(ranges) if "i" in self.flags else ranges)

    def atom(self, depth: int) -> Node | None:
        """One item without what repeats it; None for a group of flags alone."""
        char = self.next()
        if char == "(":
            return self.group(depth)
        if char == "[":
            return self.bracket()
        if char == ".":
            return Set(classes.ANY if "s" in self.flags else classes.NOT_NEWLINE)
        if char in "^$":
            side = "begin" if char == "^" else "end"
            return Look(f"line_{side}" if "m" in self.flags else side)
        if char in "*+?":
            raise PatternError(f"nothing to repeat before {char}")
        if char != "\\":
            return self.literal(char)
        if self.rest[:1] in _LOOKS and self.rest:
            return Look(_LOOKS[self.next()])
        return self.of_ranges(self.escape())

    def group(self, depth: int) -> Node | None:
        for start, what in _LOOK_AROUND.items():
            if self.starts(start):
                raise UnsupportedPattern(f"{what} ({start}...) is not part of RE2's syntax")
        flags = self.flags
        if self.take("?P<") or self.take("?<"):
            if not self.until(">", "the name of a group").isidentifier():
                raise PatternError("a group has no proper name")
        elif self.take("?"):
            flags, ends = self.new_flags()
            if ends:
                self.flags = flags
                return None
        node = self.alternatives(flags, depth + 1)
        if not self.take(")"):
            raise PatternError("a ( without )")
        return node

    def new_flags(self) -> tuple[frozenset[str], bool]:
        """The flags of `(?i-s:` or `(?i)`, and whether it is the latter."""
        flags, on = set(self.flags), True
        while (char := self.next()) not in ":)":
            if char == "-" and on:
                on = False
            elif char in _FLAGS:
                flags = flags | {char} if on else flags - {char}
            else:
                raise PatternError(f"an unknown group (?{char}")
        return frozenset(flags), char == ")"

    def repeated(self, node: Node) -> Node:
        """The node with the operator that follows it, if any; another one after it is an error."""
        bounds = self.bounds()
        if bounds is None:
            return node
        self.take("?")
        rest = self.rest
        if self.bounds() is not None:
            raise PatternError(f"nothing to repeat before {rest[0]}")
        least, most = bounds
        if not least <= (least if most is None else most) <= MOST_REPEATS:
            raise PatternError(f"a repetition {{{least},{most}}}")
        return Repeat(node, least, most)

    def bounds(self) -> tuple[int, int | None] | None:
        for char, found in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self.take(char):
                return found
        end = self.pattern.find("}", self.at) if self.starts("{") else -1
        words = self.pattern[self.at + 1 : end].split(",") if end > 0 else []
        digits = [w.isascii() and w.isdigit() for w in words]
        if len(words) not in (1, 2) or not digits[0] or not (digits[-1] or not words[-1]):
            return None  # a brace that is no repetition stands for itself
        self.at = end + 1
        least = int(words[0])
        return least, int(words[-1]) if words[-1] else None

    def escape(self) -> Ranges:
        """What a backslash, which has been read, and the characters after it stand for."""
        char = self.next()
        if char in classes.PERL:
            return classes.PERL[char]
        if char in "pP":
            name = self.until("}", "\\p{") if self.take("{") else self.next()
            negated = name.startswith("^")
            found = classes.category(name.removeprefix("^"))
            if found is None:
                raise UnsupportedPattern(f"the class \\p{{{name}}}")
            return classes.inverse(found) if (char == "P") != negated else found
        code = self.code(char)
        return ((code, code),)

    def code(self, char: str) -> int:
        if char in _SIMPLE:
            return ord(_SIMPLE[char])
        if char == "x":
            text = self.until("}", "\\x{") if self.take("{") else self.next() + self.next()
            return self.number(text, 16)
        if char in "01234567" and (char == "0" or self.octal(char)):
            text = char
            while len(text) < 3 and self.rest and self.rest[0] in "01234567":
                text += self.next()
            return self.number(text, 8)
        if char.isdigit():
            raise UnsupportedPattern(f"a backreference (\\{char}) is not part of RE2's syntax")
        if char.isascii() and not char.isalnum():
            return ord(char)
        if char == "C":
            raise UnsupportedPattern("single bytes (\\C)")
        raise PatternError(f"an unknown escape \\{char}")

    def octal(self, char: str) -> bool:
        """Whether a digit after a backslash begins an octal number: another one follows."""
        return bool(self.rest) and self.rest[0] in "01234567"

    def number(self, text: str, base: int) -> int:
        try:
            code = int(text, base) if text.isalnum() else -1
        except ValueError:
            code = -1
        if not 0 <= code <= classes.LAST:
            raise PatternError(f"no character {text!r}")
        return code

    def bracket(self) -> Node:
        """A class in brackets, whose [ has been read."""
        negated, first = self.take("^"), True
        found: list[tuple[int, int]] = []
        while first or not self.starts("]"):
            first = False
            found += self.item()
        self.at += 1
        ranges = classes.joined(found)
        if "i" in self.flags:
            ranges = classes.folded(ranges)
        return Set(classes.inverse(ranges) if negated else ranges)

    def item(self) -> Ranges:
        """A named class, one character, or a range of them."""
        if self.take("[:"):
            name = self.until(":]", "[:")
            plain = classes.POSIX.get(name.removeprefix("^"))
            if plain is None:
                raise PatternError(f"an unknown class [:{name}:]")
            return classes.inverse(plain) if name.startswith("^") else plain
        low = self.bound()
        more = self.starts("-") and self.rest[1:2] not in ("]", "")
        if not more or len(low) != 1 or low[0][0] != low[0][1]:
            return low
        self.at += 1
        high = self.bound()
        if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
            raise PatternError("a range of characters that ends before it begins")
        return ((low[0][0], high[0][0]),)

    def bound(self) -> Ranges:
        char = self.next()
        return self.escape() if char == "\\" else ((ord(char), ord(char)),)
