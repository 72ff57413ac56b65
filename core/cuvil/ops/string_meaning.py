"""What the string functions that kernels call mean: one record for each function in C.

A call has strings, then whole numbers, then the bytes of a table, and gives one element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from cuvil.ir.string_tables import Automaton, read_automaton, read_case, read_strings

__all__ = ["CALLS", "StringCall", "as_array", "as_texts", "call"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class StringCall:
    """One function, `cuvil_string_<name>` in C.

    texts, numbers: how many strings and integers it takes. prepare: what the table's bytes mean to
    `meaning`, which gets it last (None: there is no table). result: a dtype. makes: whether it
    makes new bytes, for which it needs the run.
    """

    name: str
    texts: int
    numbers: int
    result: str
    meaning: Callable[..., Any]
    prepare: Callable[[bytes], Any] | None = None
    makes: bool = False


def _cached(read: Callable[[Array], Any]) -> Callable[[bytes], Any]:
    return lru_cache(maxsize=64)(lambda data: read(np.frombuffer(data, np.uint8)))


def _find(text: str, keys: Mapping[str, int]) -> int:
    return keys.get(text, len(keys))


def _match(text: str, automaton: Automaton) -> bool:
    return automaton.matches(text)


def _case(text: str, mapping: Mapping[int, int]) -> str:
    return text.translate(mapping)


def pieces(text: str, most: int, delimiter: str) -> list[str]:
    """The parts of a string between delimiters ("": runs of white space, those around it dropped),
    after at most `most` splits (-1: all)."""
    return text.split(delimiter or None, most)


def _count(text: str, most: int, delimiter: str) -> int:
    return len(pieces(text, most, delimiter))


def _piece(text: str, number: int, most: int, delimiter: str) -> str:
    found = pieces(text, most, delimiter)
    return found[number] if number < len(found) else ""


def tokens(text: str, least: int, automaton: Automaton) -> list[str]:
    """The longest matches, from left to right, that have at least so many characters."""
    data, at, found = text.encode(), 0, []
    while at < len(data):
        size = automaton.longest(data, at)
        token = data[at : at + size].decode()
        if size and len(token) >= least:
            found.append(token)
        at += size or len(data[at:].decode()[0].encode())
    return found


def _token(text: str, number: int, least: int, automaton: Automaton) -> str:
    found = tokens(text, least, automaton)
    return found[number] if number < len(found) else ""


_strings = _cached(read_strings)
_ROWS = (
    StringCall("at", 0, 1, "string", lambda i, items: items[i], _strings),
    StringCall("order", 2, 0, "i64", lambda a, b: (a > b) - (a < b)),
    StringCall(
        "find", 1, 0, "i64", _find, _cached(lambda t: {k: i for i, k in enumerate(read_strings(t))})
    ),
    StringCall("match", 1, 0, "bool", _match, _cached(read_automaton)),
    StringCall("concat", 2, 0, "string", lambda a, b: a + b, makes=True),
    StringCall("case", 1, 0, "string", _case, _cached(read_case), makes=True),
    StringCall("count", 1, 1, "i64", _count, _cached(lambda t: read_strings(t)[0])),
    StringCall("piece", 1, 2, "string", _piece, _cached(lambda t: read_strings(t)[0])),
    StringCall("tokens", 1, 1, "i64", lambda *a: len(tokens(*a)), _cached(read_automaton)),
    StringCall("token", 1, 2, "string", _token, _cached(read_automaton)),
)

CALLS: Mapping[str, StringCall] = MappingProxyType({row.name: row for row in _ROWS})

_NUMPY = {"string": np.object_, "bool": np.bool_, "i64": np.int64}


def call(name: str, args: Sequence[Any], table: Array | None = None) -> Array:
    """A call on arrays (of str objects, of integers), which broadcast."""
    row = CALLS[name]
    last = () if row.prepare is None or table is None else (row.prepare(table.tobytes()),)
    arrays = np.broadcast_arrays(*map(as_array, args))
    result: Array = np.empty(arrays[0].shape, _NUMPY[row.result])
    for index in np.ndindex(result.shape):
        result[index] = row.meaning(*(a[index] for a in arrays), *last)
    return result


def as_texts(array: Array) -> Array:
    """numpy's own types of text as objects, which strings are here; other arrays as they are."""
    return array.astype(object) if array.dtype.kind in "UT" else array


def as_array(value: Any) -> Array:
    """An array or a number as numpy takes it; a str as an array of one object, zeros at its end
    and all."""
    if not isinstance(value, str):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array
