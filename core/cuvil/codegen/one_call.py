"""What `<name>_inference` takes: one description for the header and for the function's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.groups import Group, with_places
from cuvil.plan.plan import Plan, Port

__all__ = ["EXTENT", "INPUT", "OUTPUT", "ROOM", "SHAPE", "Parameter", "parameters"]

EXTENT, INPUT, OUTPUT, ROOM, SHAPE = "extent", "input", "output", "room", "shape"


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    role: EXTENT of a symbol, data of an INPUT or OUTPUT, ROOM for an output's elements where they
    have no bound, SHAPE that the run has found. name: as the model has it. places: positions of
    its tensors among the inputs or outputs. For a sequence the parameter is an array of as many.
    """

    role: str
    name: str
    group: Group | None = None
    places: range = range(0)


def parameters(plan: Plan) -> list[Parameter]:
    """In the function's order."""
    groups = plan.groups
    found = [Parameter(EXTENT, name) for name in plan.symbols]
    found += [Parameter(INPUT, g.name, g, at) for g, at in with_places(groups.inputs)]
    for group, at in with_places(groups.outputs):
        found.append(Parameter(OUTPUT, group.name, group, at))
        if any(plan.is_unbounded(p) for p in _ports(plan.outputs, at)):
            found.append(Parameter(ROOM, f"{group.name}_room", group, at))
    found += [
        Parameter(SHAPE, f"{group.name}_shape", group, at)
        for group, at in with_places(groups.outputs)
        if any(plan.is_produced(p) for p in _ports(plan.outputs, at))
    ]
    return found


def _ports(ports: Sequence[Port], places: range) -> Sequence[Port]:
    return ports[places.start : places.stop]
