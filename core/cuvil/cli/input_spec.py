"""`--input-spec x=float32[1,seq]`: shapes of a torch model's inputs, read from text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from cuvil.engine.api import torch_door
from cuvil.errors import OptionError

_ROW = re.compile(r"([A-Za-z_]\w*)=([a-z]\w*)\[([^\]]*)\]")


def parse_input_spec(words: Sequence[str] | None) -> Any:
    """Rows (name, dtype, extents), extents being numbers, names, or None for `?`; where a word is a
    plain number or text, as for `sr=16000`, examples by position instead. None for no words.

    Raises OptionError.
    """
    rows = [_row(word) for word in words or ()]
    if not rows:
        return None
    if all(len(row) == 3 for row in rows):
        return rows
    door = torch_door()
    made: list[Any] = []
    for row in rows:
        if len(row) == 2:
            made.append(row[1])
            continue
        if not all(isinstance(d, int) for d in row[2]):
            raise OptionError(f"--input-spec {row[0]}: beside plain values, extents are numbers")
        made.append(door.example(*row))
    return tuple(made)


def _row(word: str) -> tuple[Any, ...]:
    found = _ROW.fullmatch(word.replace(" ", ""))
    if found is None:
        return _plain(word)
    name, dtype, text = found.groups()
    return name, dtype, tuple(_extent(word, d) for d in text.split(",") if d)


def _extent(word: str, text: str) -> int | str | None:
    if text == "?":
        return None
    if text.isdecimal():
        return int(text)
    if not text.isidentifier():
        raise OptionError(f"--input-spec {word}: '{text}' is no extent: a number, a name, or ?")
    return text


def _plain(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not name.isidentifier() or not equals or not isinstance(value, bool | int | float | str):
        raise OptionError(
            f"--input-spec {word}: expected NAME=DTYPE[EXTENTS], such as x=float32[1,seq], or "
            "NAME=NUMBER"
        )
    return name, value
