"""Which line of a model breaks a promise of `dynamic_shapes`: torch's guards and their origin."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy  # type: ignore[import-untyped]
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from cuvil.errors import ShapeMismatchError
from cuvil.extents import Extents
from cuvil.frontends.torch.dynamic import Axes

__all__ = ["Guard", "Record", "recorded_guards", "violation"]

_OWN = (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__)))
_MOST = 256  # values of a symbol that are tried


_SOURCE = re.compile(r"L\['([^']+)'\]\.size\(\)\[(\d+)\]")


class Guard(NamedTuple):
    """A relation that torch found to hold for the samples. where: line, or "" for none; op: the
    ATen operator that was called."""

    relation: Any
    where: str
    op: str


@dataclass
class Record:
    """Guards in the order in which torch made them, and the shapes that they are about."""

    guards: list[Guard] = field(default_factory=list)
    env: ShapeEnv | None = None

    def names(self, axes: Axes) -> dict[Any, str]:
        """Torch's symbols -> what the caller calls them."""
        found: dict[Any, str] = {}
        for source, one in (self.env.source_to_var if self.env else {}).items():
            place = _SOURCE.fullmatch(str(source))
            if place is not None and int(place[2]) in axes.get(place[1], {}):
                found[one] = axes[place[1]][int(place[2])]
        return found


@contextmanager
def recorded_guards() -> Iterator[Record]:
    """Notes all guards that torch makes meanwhile."""
    found = Record()
    original = ShapeEnv._log_guard

    def noted(self: ShapeEnv, prefix: str, relation: Any, *args: Any, **keywords: Any) -> Any:
        found.guards.append(Guard(relation, *_origin()))
        found.env = self
        return original(self, prefix, relation, *args, **keywords)

    ShapeEnv._log_guard = noted  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        ShapeEnv._log_guard = original  # type: ignore[method-assign]


def _origin() -> tuple[str, str]:
    """The innermost line outside of torch, and the operator that it called."""
    frame: Any = sys._getframe(2)
    op = ""
    while frame is not None:
        for value in frame.f_locals.values() if not op else ():
            if isinstance(value, torch._ops.OpOverload):
                op = str(value)
                break
        path = frame.f_code.co_filename
        if not path.startswith(_OWN) and "/importlib/" not in path and path[0] != "<":
            return f"{path}:{frame.f_lineno} in {frame.f_code.co_name}", op
        frame = frame.f_back
    return "", op


def violation(
    name: str, promised: Mapping[str, Extents], axes: Axes, record: Record, said: str
) -> ShapeMismatchError:
    """The error for promises that a model does not keep: with the first line that needs more.

    said: torch's own words."""
    names = record.names(axes)
    lines = [line.strip(" -") for line in said.splitlines()]
    _, _, behind = said.partition("Suggested fixes:\n")
    fixes = [line.strip() for line in behind.partition("\n\n")[0].splitlines() if " = " in line]
    hint = f"; what it keeps: {', '.join(fixes)}" if fixes else ""
    words = ", ".join(f"{n} = {e}" for n, e in promised.items())
    for guard in record.guards:
        if not _holds(guard.relation, promised, names):
            op = f" ({guard.op})" if guard.op else ""
            return ShapeMismatchError(
                f"{name}: {guard.where or 'the model'}{op} needs {_text(guard.relation, names)}; "
                f"dynamic_shapes promises {words}{hint}"
            )
    reason = lines[0] if lines else "the model breaks it"
    return ShapeMismatchError(f"{name}: dynamic_shapes promises {words}: {reason}{hint}")


def _holds(relation: Any, promised: Mapping[str, Extents], names: Mapping[Any, str]) -> bool:
    free = relation.free_symbols
    if len(free) != 1 or not free <= names.keys():
        return not free <= names.keys()  # two symbols that are to be related
    (one,) = free
    least, most, step = promised[names[one]]
    top = least + 4096 * step if most is None else most
    values = range(max(least, step), top + 1, step)
    chosen = [*values[: _MOST // 2], *values[-_MOST // 2 :]]
    return all(relation.subs(one, v) == sympy.true for v in chosen)


def _text(relation: Any, names: Mapping[Any, str]) -> str:
    known = {s: sympy.Symbol(names.get(s, str(s))) for s in relation.free_symbols}
    return str(relation.xreplace(known))
