"""Which types the arguments of a call have."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    Dict,
    List,
    Tuple,
    Type,
    can_hash,
    parse,
)
from cuvil.jit_compiler.frontend.source import Unsupported
from cuvil.jit_compiler.tensors import tensor_code
from cuvil_runtime import _runtime

_PLAIN: dict[type, Type] = {int: INT, float: FLOAT, bool: BOOL, str: STR, type(None): NONE}


def kind_of(value: object, hint: Type | None = None) -> Type:
    """The type of an argument. hint: that of its annotation, for a list or dict that is empty.

    Raises Unsupported for what compiled code does not take.
    """
    kind = _PLAIN.get(type(value))
    if kind == INT and not -(1 << 63) <= value < 1 << 63:  # type: ignore[operator]
        raise Unsupported("an int beyond 64 bits")
    if kind is not None:
        return kind
    if type(value) is tuple:
        hints = hint.items if isinstance(hint, Tuple) else ()
        padded = [*hints, *[None] * len(value)]
        return Tuple(tuple(kind_of(v, h) for v, h in zip(value, padded, strict=False)))
    if type(value) is list:
        return List(_common(value, hint.item if isinstance(hint, List) else None, "list"))
    if type(value) is dict:
        return _dict_kind(value, hint)
    if isinstance(value, np.ndarray | np.generic):
        text = _runtime.array_text(value)
        if text:
            return parse(text)
        raise Unsupported(f"an array of {value.dtype} and rank {value.ndim}")
    code = tensor_code(value)
    if code is not None:
        return parse(code)
    raise Unsupported(f"an argument of type {type(value).__name__}")


def _common(values: Iterable[object], hint: Type | None, what: str) -> Type:
    found: Type | None = None
    for value in values:
        kind = kind_of(value, hint)
        if found is not None and kind != found:
            raise Unsupported(f"a {what} of {found} and {kind}")
        found = kind
    found = found or hint
    if found is None:
        raise Unsupported(f"an empty {what}: annotate the parameter, as {what}[int]")
    return found


def _dict_kind(value: dict[Any, Any], hint: Type | None) -> Type:
    hints = (hint.key, hint.value) if isinstance(hint, Dict) else (None, None)
    key = _common(value, hints[0], "dict")
    if not can_hash(key):
        raise Unsupported(f"a dict with keys of type {key}")
    return Dict(key, _common(value.values(), hints[1], "dict"))


def hints_of(python: Callable[..., Any]) -> dict[str, Type]:
    """The types that a function's annotations name, as far as they are types of compiled code."""
    try:
        hints = typing.get_type_hints(python)
    except Exception:  # whatever evaluating strings of the user's may raise
        return {}
    found = {name: hinted(hint) for name, hint in hints.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def hinted(hint: Any) -> Type | None:
    """The type that an annotation names, None where it names none of compiled code's."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin = typing.get_origin(hint)
    parts = [hinted(a) for a in typing.get_args(hint)]
    if not parts or None in parts:
        return None
    if origin is list:
        return List(parts[0])  # type: ignore[arg-type]
    if origin is dict and len(parts) == 2:
        return Dict(parts[0], parts[1])  # type: ignore[arg-type]
    return Tuple(tuple(parts)) if origin is tuple else None  # type: ignore[arg-type]


def describe(kinds: Iterable[Type]) -> str:
    """For people: `(int, list[str])`."""
    return f"({', '.join(map(str, kinds))})"
