"""Emitters by scalar function and kind of element type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Emitter", "emitter", "find_emitter"]

Emitter = Callable[..., Any]  # (MathBuilder, *operands, **attributes) -> ir.Value

_EMITTERS: dict[tuple[str, str], Emitter] = {}


def emitter(*names: str, kinds: tuple[str, ...] = ("float",)) -> Callable[[Emitter], Emitter]:
    """Registers a function as the emitter of scalar functions for kinds of `DType`.

    With several names the function takes the name after the builder. A second emitter for the
    same name and kind raises ValueError.
    """

    def register(function: Emitter) -> Emitter:
        for name in names:
            for kind in kinds:
                if (name, kind) in _EMITTERS:
                    raise ValueError(f"two emitters for {name} of {kind}")
                _EMITTERS[name, kind] = _bound(function, name) if len(names) > 1 else function
        return function

    return register


def _bound(function: Emitter, name: str) -> Emitter:
    return lambda m, *args, **attrs: function(m, name, *args, **attrs)


def find_emitter(name: str, kind: str) -> Emitter | None:
    """The emitter of a scalar function for a kind, if it has one of its own."""
    return _EMITTERS.get((name, kind))
