"""ATen operators as records: one decorated function, a composition of primitives, per overload.

    @aten("leaky_relu")
    def leaky_relu(cx, x, negative_slope=0.01):
        return cx.b.leaky_relu(x, alpha=float(negative_slope))

Parameters are those of the overload's schema, in order, with its defaults. A tensor comes as a
value of the graph, an integer as an int or a symbolic dim, an element type by Cuvil's name of it
("f32"), a list as a list; layouts, devices and memory formats come as None. A function gives one
value, or a tuple for several results (None for one that nobody can ask for).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Compose", "aten", "aten_rows", "find", "names"]

Compose = Callable[..., Any]

_RECORDS: dict[str, Compose] = {}


def aten(*overloads: str) -> Callable[[Compose], Compose]:
    """Registers a function for overloads; ValueError for one that has a function.

    "abs" is aten.abs.default, "add.Tensor" is aten.add.Tensor; others are written in full.
    """

    def register(compose: Compose) -> Compose:
        for name in map(full_name, overloads):
            if name in _RECORDS:
                raise ValueError(f"{name} is registered twice")
            _RECORDS[name] = compose
        return compose

    return register


def aten_rows(make: Callable[..., Compose], rows: Mapping[str, Any]) -> None:
    """Registers a family: overload -> the argument with which `make` builds its function."""
    for name, argument in rows.items():
        aten(name)(make(argument))


def full_name(overload: str) -> str:
    """The name that torch prints for an overload."""
    dots = overload.count(".")
    return overload if dots > 1 else f"aten.{overload}" if dots else f"aten.{overload}.default"


def find(name: str) -> Compose | None:
    """The function of an overload by the name that torch prints, if there is one."""
    return _RECORDS.get(name)


def names() -> Iterator[str]:
    """The overloads that have a function, sorted."""
    return iter(sorted(_RECORDS))
