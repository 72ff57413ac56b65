"""Patterns of RE2's syntax against Python's own, on all short strings of some characters."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from cuvil.ir.string_tables import automaton_table, read_automaton
from cuvil.ops.regex import PatternError, UnsupportedPattern, compile_pattern, utf8_ranges

TEXTS = ["".join(t) for n in range(4) for t in product("aB1é\n-😀", repeat=n)]
SAME = [
    "a|B", "(a1)*", "[^a]", "a.1", "(?s:a.1)", "[é-ü]+|a{2,}", "(a|B)*1", r"[\dB]{1,2}",
    r"\Ba|a\b1?", "(?i:b|É)+", "(?m:^a$\n^1?$)?", ".*", "", "a||B", r"a\n1", r"[]a-]+",
    "(?P<name>a)?é", r"\W+",
    "a{0}1", "(a?B?){2}", r"\x61+", "[\\d\\--]*", "a*?B+?", r"(?:\n|^)a",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SAME)
def test_it_matches_what_pythons_does(pattern):
    automaton = compile_pattern(pattern)
    known = re.compile(pattern, 0 if "(?i" in pattern else re.ASCII)
    wrong = [t for t in TEXTS if automaton.matches(t) != (known.fullmatch(t) is not None)]
    assert not wrong


@pytest.mark.parametrize(
    "pattern, matching, other",
    [
        (r"\Qa.b\E", "a.b", "axb"),
        (r"[[:alpha:]]+[[:^alpha:]]", "ab1", "abc"),
        (r"\p{Lu}\PL", "É1", "é1"),
        (r"a\z", "a", "a\n"),
        (r"\x{1F600}", "😀", "😁"),
        ("a{,2}", "a{,2}", "aa"),
        (r"\101", "A", "1"),
    ],
)
def test_what_only_re2_has(pattern, matching, other):
    assert compile_pattern(pattern).matches(matching)
    assert not compile_pattern(pattern).matches(other)


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[b-a]", "a**", "*", "a{1001}", "a{2}{3}", "[a", r"\y", "(?z)"]
)
def test_what_is_no_pattern(pattern):
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)", "(?<!a)b", "(?>a)", r"\p{Greek}", r"\C"])
def test_what_re2_has_not_or_we_have_not(pattern):
    with pytest.raises(UnsupportedPattern):
        compile_pattern(pattern)


def test_a_pattern_that_would_be_too_large():
    with pytest.raises(UnsupportedPattern, match="more than"):
        compile_pattern("(a{500}){500}")
    with pytest.raises(UnsupportedPattern, match="more than"):
        compile_pattern(".*a.{13}")


def test_ranges_of_code_points_as_bytes():
    low, high = 0x7E, 0x10FFFF
    accepted = set()
    for sequence in utf8_ranges(low, high):
        accepted.add(len(sequence))
    assert accepted == {1, 2, 3, 4}
    for code in (0x7D, 0x7E, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF):
        data = chr(code).encode()
        found = any(
            len(s) == len(data) and all(a <= b <= c for b, (a, c) in zip(data, s, strict=True))
            for s in utf8_ranges(low, high)
        )
        assert found == (code >= low)


def test_tables_read_back():
    automaton = compile_pattern("a[é-ü]*")
    again = read_automaton(automaton_table(automaton))
    assert np.array_equal(again.follow, automaton.follow)
    assert again.matches("aéü") and not again.matches("é")
