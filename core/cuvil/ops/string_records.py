"""Strings in the memory of interpreted programs: 16 bytes each, as a `cuvil_string` has.

In place of an address stands a number: equal strings have equal numbers, and garbage is found out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuvil.ir.dtypes import DType

__all__ = ["memory_type", "to_records", "to_texts"]

Array = np.ndarray[Any, Any]

RECORD = np.dtype([("number", "<i8"), ("size", "<i8")])
_texts: list[str] = [""]  # of this process: the empty string is all zeros
_numbers: dict[str, int] = {"": 0}


def memory_type(kind: DType) -> np.dtype[Any]:
    """The numpy dtype of elements as they lie in the memory of an interpreted program."""
    return RECORD if kind.is_string else kind.numpy


def to_records(texts: Any) -> Array:
    """A str, or an array of them, as records."""
    objects = np.asarray(texts, object)
    result = np.zeros(objects.shape, RECORD)
    for index in np.ndindex(objects.shape):
        text = str(objects[index])
        number = _numbers.setdefault(text, len(_texts))
        if number == len(_texts):
            _texts.append(text)
        result[index] = number, len(text.encode())
    return result


def to_texts(records: Array) -> Any:
    """The strings of records, a str for a single one; ValueError for what is no string."""
    result = np.empty(records.shape, object)
    for index in np.ndindex(records.shape):
        number, size = (int(n) for n in records[index])
        if not 0 <= number < len(_texts) or len(_texts[number].encode()) != size:
            raise ValueError(f"({number}, {size}) is read as a string and is none")
        result[index] = _texts[number]
    return result[()]
