"""Operators on strings. Case and patterns know nothing of locales."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cuvil.ir.string_tables import automaton_table, case_table, read_case, string_table
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import count_of
from cuvil.ops.onnx.registry import onnx_op
from cuvil.ops.regex import PatternError, UnsupportedPattern, compile_pattern

__all__ = ["found_in", "needs_strings", "texts"]

ACTIONS = ("NONE", "LOWER", "UPPER")


def texts(items: Iterable[str]) -> np.ndarray:
    """A vector of strings, as `Cx.b.const` takes it."""
    return np.array([*items, None], object)[:-1]


def needs_strings(cx: Cx, *values: Value) -> None:
    """ModelError where a value does not hold strings."""
    for value in values:
        if not cx.type(value).dtype.is_string:
            cx.bad(f"takes strings, not {cx.type(value).dtype.name}")


def found_in(cx: Cx, x: Value, keys: Sequence[str]) -> Value:
    """The position of the last of the keys that each string equals, or their number."""
    places = {key: i for i, key in enumerate(keys)}
    ordered = sorted(places, key=str.encode)
    place = cx.b.string_find(x, cx.b.table(string_table(ordered)))
    back = np.array([*(places[key] for key in ordered), len(keys)], np.int64)
    return cx.b.gather(cx.b.const(back), place, axis=0)


@onnx_op("StringConcat", since=20)
def string_concat(cx: Cx, x: Value, y: Value) -> Value:
    """The strings of y behind those of x."""
    needs_strings(cx, x, y)
    return cx.b.string_concat(x, y)


@onnx_op("StringSplit", since=20)
def string_split(
    cx: Cx, x: Value, *, delimiter: str = "", maxsplit: int | None = None
) -> tuple[Value, ...]:
    """(parts, padded with empty strings to the longest list of them; how many there are)."""
    needs_strings(cx, x)
    b, most = cx.b, -1 if maxsplit is None else maxsplit
    table = b.table(string_table([delimiter]))
    counts = b.string_count(x, table, most=most)
    flat = b.reshape(counts, dims=(cx.type(x).size,))
    longest = b.reduce(b.concat(flat, b.const(np.zeros(1, np.int64)), axis=0), kind="max",
                       axes=(0,), keepdims=False)  # fmt: skip
    limit = most + 1 if most >= 0 else None
    extent = cx.bind(longest, "pieces", most=limit)
    return b.string_pieces(x, table, dims=(extent,), most=most), counts


@onnx_op("StringNormalizer", since=10)
def string_normalizer(
    cx: Cx,
    x: Value,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: tuple[str, ...] = (),
) -> Value:
    """The strings that are no stop words, in another case; where none is left, an empty one."""
    needs_strings(cx, x)
    kind = cx.type(x)
    if kind.rank not in (1, 2) or (kind.rank == 2 and kind.dims[0] != 1):
        cx.bad(f"takes [C] or [1, C], not [{', '.join(map(str, kind.dims))}]")
    if case_change_action not in ACTIONS:
        cx.bad(f"case_change_action '{case_change_action}'; known: {', '.join(ACTIONS)}")
    flat = cx.b.reshape(x, dims=(kind.size,))
    if stopwords:
        flat = _without(cx, flat, stopwords, bool(is_case_sensitive))
    if case_change_action != "NONE":
        flat = _in_case(cx, flat, case_change_action == "UPPER")
    (count,) = cx.dims(flat)
    return flat if kind.rank == 1 else cx.b.reshape(flat, dims=(1, count))


def _in_case(cx: Cx, x: Value, upper: bool) -> Value:
    return cx.b.string_case(x, cx.b.table(case_table(upper)))


def _without(cx: Cx, x: Value, words: Sequence[str], exact: bool) -> Value:
    """The strings of a vector that are not among the words; one empty string where none is."""
    b = cx.b
    if exact:
        place = found_in(cx, x, words)
    else:
        mapping = read_case(case_table(False))
        lower = [w.translate(mapping) for w in words]
        place = found_in(cx, _in_case(cx, x, False), lower)
    kept = b.eq(place, b.scalar(len(words), "i64"))
    nothing = b.not_(b.reduce(kept, kind="any", axes=(0,), keepdims=True))
    chosen = b.concat(kept, nothing, axis=0)
    padded = b.concat(x, b.const(texts([""])), axis=0)
    count = count_of(cx, chosen, "words")
    return b.gather(padded, b.positions(chosen, count=count), axis=0)


@onnx_op("RegexFullMatch", since=20)
def regex_full_match(cx: Cx, x: Value, *, pattern: str) -> Value:
    """Whether the pattern, in RE2's syntax, matches all of a string."""
    needs_strings(cx, x)
    try:
        automaton = compile_pattern(pattern)
    except PatternError as error:
        cx.bad(f"pattern {pattern!r}: {error}")
    except UnsupportedPattern as error:
        cx.fail(f"pattern {pattern!r}: {error}")
    return cx.b.string_match(x, cx.b.table(automaton_table(automaton)))
