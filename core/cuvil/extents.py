"""What a caller promises of symbolic dims: a range and a divisor; how it is written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cuvil.errors import OptionError

__all__ = ["Extents", "parse_extents", "read_dynamic_shapes"]

Dynamic = Mapping[str, "Extents | Mapping[int, Extents | str]"]

_TEXT = re.compile(
    r"(?:(?P<least>\d*)\s*(?:\.\.|:)\s*(?P<most>\d*)|(?P<only>))"
    r"(?:\s*(?::|,?\s*multiples?\s+of)\s*(?P<step>\d+))?"
)
_FORMS = "128..512, 128..512:8, '128..512, multiple of 8', (128, 512), (128, 512, 8) or a range"


class Extents(NamedTuple):
    """The values of a symbolic dim: least to greatest (None: no bound), those that `multiple`
    divides. least and greatest are such values themselves."""

    least: int = 0
    greatest: int | None = None
    multiple: int = 1

    def __str__(self) -> str:
        most = "" if self.greatest is None else self.greatest
        step = f", multiple of {self.multiple}" if self.multiple > 1 else ""
        return f"{self.least}..{most}{step}"


def parse_extents(name: str, value: Any) -> Extents:
    """Reads a promise for the dim `name`: text, a tuple, a `range`, None (anything), or what has
    `min` and `max` (torch.export.Dim). Raises OptionError."""
    if value is None:
        return Extents()
    if isinstance(value, range):
        if len(value) == 0 or value.step < 1 or value.start % value.step:
            raise OptionError(f"dynamic shape '{name}': {value} is no range of multiples")
        return _checked(name, value[0], value[-1], value.step)
    if isinstance(value, str):
        return _from_text(name, value)
    if isinstance(value, tuple) and len(value) in (2, 3):
        return _checked(name, value[0], value[1], value[2] if len(value) == 3 else 1)
    least, most = getattr(value, "min", None), getattr(value, "max", None)
    if isinstance(least, int) and isinstance(most, int):  # torch's "no bound" is near 2^63
        return _checked(name, least, None if most >= 1 << 62 else most, 1)
    raise OptionError(f"dynamic shape '{name}': {value!r} is none of {_FORMS}")


def _from_text(name: str, text: str) -> Extents:
    found = _TEXT.fullmatch(text.strip())
    if found is None or not text.strip():
        raise OptionError(f"dynamic shape '{name}': '{text}' is none of {_FORMS}")
    least, most, step = found["least"], found["most"], found["step"]
    return _checked(name, int(least or 0), int(most) if most else None, int(step or 1))


def _checked(name: str, least: Any, most: Any, multiple: Any) -> Extents:
    given = [least, multiple, *(() if most is None else (most,))]
    if not all(isinstance(v, int) and v >= 0 for v in given) or multiple < 1:
        raise OptionError(f"dynamic shape '{name}': ({least}, {most}, {multiple}) is not a range")
    low = -(-least // multiple) * multiple
    high = None if most is None else most // multiple * multiple
    if high is not None and high < low:
        step = f" that {multiple} divides" if multiple > 1 else ""
        raise OptionError(f"dynamic shape '{name}': no number{step} lies in {least}..{most}")
    return Extents(low, high, multiple)


def read_dynamic_shapes(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """`dynamic_shapes` as plain data: symbol -> Extents, or input -> {axis: Extents or a name}.

    A mapping or a list as a value is the axes of an input; a list has one entry per axis, None
    where nothing is said. An axis may be the name of a symbol, or what has a name, `min` and `max`
    (torch.export.Dim), which says both. Raises OptionError.
    """
    found: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if isinstance(value, list):
            value = {axis: v for axis, v in enumerate(value) if v is not None}
        if isinstance(value, Mapping):
            axes = {int(axis): _axis(f"{name}[{axis}]", v, found) for axis, v in value.items()}
            found[str(name)] = axes
        else:
            found[str(name)] = parse_extents(str(name), value)
    return found


def _axis(where: str, value: Any, found: dict[str, Any]) -> Extents | str:
    """One axis of an input; what it says of a symbol by name is noted."""
    if isinstance(value, str) and value.isidentifier():
        return value
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and hasattr(value, "max"):
        word = re.sub(r"\W+", "_", name).strip("_")
        root, function = getattr(value, "root", None), getattr(value, "fn", None)
        step = function(1) if root is not None and function is not None else 1
        extents = parse_extents(where, value)
        found[f"d{word}" if word[0].isdigit() else word] = _checked(where, *extents[:2], step)
        return f"d{word}" if word[0].isdigit() else word
    if type(value).__name__ == "_DimHint":  # torch.export.Dim.DYNAMIC or AUTO
        return Extents()
    return parse_extents(where, value)
