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


def test_texts_of_every_length_are_stripped_and_change_case():
    def ways(text):
        return [text.strip(), text.lstrip(), text.rstrip(), text.lower(), text.upper()]

    letters = "aZ@[`{z\x1b!\tm9"
    texts = [(letters * 4)[:n] for n in range(36)]
    spaced = [left + text + right for text in texts for left, right in ((" \n", ""), ("", "\x1c "))]
    check(ways, *((text,) for text in texts + spaced + [" " * n for n in range(20)]))


def test_keys_of_every_length_kind_and_number_are_found():
    def count(names):
        counts = {}
        for name in names:
            key = name.strip().lower()
            if key in counts:
                counts[key] += 1
            else:
                counts[key] = 1
        return counts

    texts = [
        "",
        "A",
        "é",
        "Ω" * 3,
        "K" * 15,
        "k" * 16,
        "K" * 17,
        "Straße",
        "x\0",
        "x",
        "Ā",
        "\U0001d54f",
    ]
    for number in (1, 8, 40, 300, 3000):
        names = [f" {text}{i}" if i % 3 else text for i in range(number) for text in texts]
        check(count, (names + names[::-2],))


def test_keys_that_differ_in_one_character_are_found():
    def count(names):
        counts = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        return counts

    alike = [
        "k" * i + c + "k" * (n - i) for n in (3, 9, 15, 16, 22) for i in range(n) for c in "ab"
    ]
    check(count, (alike + alike[::3],), ([f"{i}" for i in range(2000)] * 2,))


def test_numbers_become_the_objects_that_python_makes():
    def ints(n):
        return [i * (n // 7 + 1) for i in range(-n, n)]

    def floats(n):
        return [i / 3.0 - n for i in range(2 * n)]

    check(ints, *((n,) for n in (0, 3, 300, 2**12, 2**31 // 2**16)))
    check(floats, (0,), (1,), (2000,))
    assert all(value is int(str(value)) for value in cuvil.jit(ints)(3))  # there is one of each


def test_lists_that_grow_in_turn_keep_what_is_theirs():
    def three(n):
        a, b, c = [], [0.5], []
        for i in range(n):
            a.append(i)
            if i % 3 == 0:
                b.append(i * 0.5)
            c.append((i, f"{i}"))
        return a, b, c

    check(three, (0,), (1,), (7,), (3000,))
