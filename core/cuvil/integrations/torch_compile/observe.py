"""Looking at what the backend makes, while it makes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuvil.integrations.torch_compile.compiled import Compiled

__all__ = ["is_watched", "observed", "tell"]

_WATCHING: list[list[Compiled]] = []


@contextmanager
def observed() -> Iterator[list[Compiled]]:
    """The list of all graphs that the backend is given meanwhile, parts of graphs not among them.

    Compiled.problems says what runs in eager, once a graph has been called.
    """
    found: list[Compiled] = []
    _WATCHING.append(found)
    try:
        yield found
    finally:
        _WATCHING[:] = [w for w in _WATCHING if w is not found]


def is_watched() -> bool:
    """Whether somebody wants to see graphs."""
    return bool(_WATCHING)


def tell(compiled: Compiled) -> None:
    """Hands a new graph to all who watch."""
    for watching in _WATCHING:
        watching.append(compiled)
