"""Strings in compiled functions against the interpreter's."""

from __future__ import annotations

import pytest
from jit.same import check

import cuvil

TEXTS = ["Hello World ", "  a,b,,c ", "", "é É ß", "\tx\n", "123", "ABC", "😀 smile", "\x1cx\x85"]
CALLS = [(text,) for text in TEXTS]


def test_methods():
    def methods(s):
        return (s.strip(), s.lstrip(), s.rstrip(" d"), s.lower(), s.upper(), s.split(),
                s.split(","), s.startswith("He"), s.endswith((" ", "x")), s.find("o"),
                s.count("l"), s.isdigit(), s.isalpha(), s.isspace(), s.isupper())  # fmt: skip

    check(methods, *CALLS)


def test_methods_that_python_runs():
    def methods(s):
        return s.replace("l", "L"), s.title(), s.zfill(5), s.partition(","), s.splitlines()

    check(methods, *CALLS)


def test_operators():
    def operators(s):
        return (len(s), s + "x", s * 2, s == "ABC", s < "a", s != s.lower(), "l" in s,
                s[::-1], s[1:4], s[:-1], "-".join(s.split()), bool(s))  # fmt: skip

    check(operators, *CALLS)


def test_characters():
    def characters(s):
        return [(i, c, ord(c), chr(ord(c) + 1)) for i, c in enumerate(s)]

    check(characters, *CALLS)


def test_formats():
    def formats(n, name):
        return f"{name}: {n} {n * 1.5:.2f} {n:>4}", str(n), str(n / 2), int("12") + n

    check(formats, (5, "x"), (-3, "é"))


def test_what_raises():
    def number(s):
        return int(s.strip()), s[3]

    check(number, ("12 4",), ("x",), ("1",))


def test_words_of_all_lengths():
    def lower_all(items):
        return [item.lower() for item in items], {item.lower(): len(item) for item in items}

    check(lower_all, (["AbC" * n + "[@`{Z" for n in range(12)],))


def test_process_names():
    @cuvil.jit
    def process_names(items: list[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for item in items:
            name = item.strip().lower()
            counts[name] = counts.get(name, 0) + 1
        return counts

    assert process_names([" Ann", "bob", "ANN "]) == {"ann": 2, "bob": 1}
    assert process_names([]) == {}
    assert cuvil.explain(process_names).signatures == ("(list[str]) -> dict[str, int]",)


@pytest.mark.parametrize("items", [["a", 1], [b"x"], [1.5, "x"]])
def test_items_that_are_no_strings_are_pythons(items):
    def first(items: list[str]):
        return items[0]

    check(first, (items,), native=False)


def test_space_around_short_words():
    def strip(items):
        return [item.strip() for item in items], [item.strip().lower() + "|" for item in items]

    spaces = ["", " ", "\t", "\x1f ", "  ", "\x1b", "!", "\x0e"]
    words = ["", "a", "Ab", "a b", "\x08", "~", "Abcd", "a\tbcde", "ABCDEFG", "abcdefghi jkl"]
    check(strip, ([a + word + b for a in spaces for b in spaces for word in words],))
