"""Sets of code points, as sorted ranges that neither touch nor overlap, and those with a name in
regular expressions (ASCII only, but for Unicode's categories)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = [
    "ANY", "LAST", "NOT_NEWLINE", "PERL", "POSIX", "Ranges", "category", "folded", "inverse",
    "joined",
]  # fmt: skip

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
ANY: Ranges = ((0, LAST),)


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Any ranges as sorted ones that do not touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def inverse(ranges: Ranges) -> Ranges:
    """All other code points."""
    ends = [-1, *(high for _, high in ranges)]
    starts = [*(low for low, _ in ranges), LAST + 1]
    gaps = zip(ends, starts, strict=True)
    return tuple((end + 1, start - 1) for end, start in gaps if end + 1 < start)


def _of(*parts: str) -> Ranges:
    """Characters, and ranges of them as two characters with a - between."""
    return joined((ord(p[0]), ord(p[-1])) for p in parts)


NOT_NEWLINE = inverse(_of("\n"))
_DIGIT, _LOWER, _UPPER, _SPACE = _of("0-9"), _of("a-z"), _of("A-Z"), _of("\t-\n", "\f-\r", " ")
_ALNUM = joined((*_DIGIT, *_LOWER, *_UPPER))
_WORD = joined((*_ALNUM, *_of("_")))
PERL = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
PERL |= {name.upper(): inverse(ranges) for name, ranges in PERL.items()}
POSIX: dict[str, Ranges] = {
    "alnum": _ALNUM,
    "alpha": joined((*_LOWER, *_UPPER)),
    "ascii": ((0, 127),),
    "blank": _of("\t", " "),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": _of("!-~"),
    "lower": _LOWER,
    "print": _of(" -~"),
    "punct": _of("!-/", ":-@", "[-`", "{-~"),
    "space": _of("\t-\r", " "),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _of("0-9", "a-f", "A-F"),
}


@lru_cache(maxsize=64)
def category(name: str) -> Ranges | None:
    """The code points of a general category of Unicode (L, Lu, Nd ...); None for another name."""
    if name not in _CATEGORIES and name not in {c[0] for c in _CATEGORIES}:
        return None
    codes = (c for c in range(LAST + 1) if unicodedata.category(chr(c)).startswith(name))
    return joined((c, c) for c in codes)


_CATEGORIES = [
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "Mn",
    "Mc",
    "Me",
    "Nd",
    "Nl",
    "No",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Co",
]


@lru_cache(maxsize=1)
def _orbits() -> dict[int, frozenset[int]]:
    """Every code point that has other cases -> all of them, itself included."""
    by_case: dict[str, set[int]] = {}
    for code in range(LAST + 1):
        char = chr(code)
        same = {c for c in (char.lower(), char.upper(), char.title()) if len(c) == 1} | {char}
        if len(same) > 1:
            lower = char.upper().lower()
            by_case.setdefault(lower, set()).update(map(ord, same))
    return {code: frozenset(group) for group in by_case.values() for code in group}


def folded(ranges: Ranges) -> Ranges:
    """The code points with those that differ from them in case only."""
    more = [
        (other, other)
        for code, group in _orbits().items()
        if any(low <= code <= high for low, high in ranges)
        for other in group
    ]
    return joined((*ranges, *more))
