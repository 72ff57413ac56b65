"""`CompiledModule`: an engine that is called as the module was that it was made from."""

from __future__ import annotations

from typing import Any

import torch

from cuvil.engine.engine import Engine
from cuvil.errors import InputError
from cuvil.frontends.torch.call_plan import CallPlan
from cuvil.frontends.torch.signature import is_size, value_of
from cuvil.frontends.torch.torch_source import TorchSource
from cuvil.frontends.torch.weights import Weights
from cuvil.integrations.torch_compile.calls import Call
from cuvil.integrations.torch_compile.overlap import overlapping

__all__ = ["CompiledModule"]


class CompiledModule:
    """A compiled module: torch in, torch out, in the module's own structures.

    engine: what runs (get_inputs, profile and the like are found here too). graph_module: what it
    was made from, for inspection. states: buffers and attributes that a call changes, by name;
    they start as they were when it was compiled, and `reset_states` brings them back. One call at
    a time where there are any. weights: those of the live module, which are part of the code.

    Raises InputError, ShapeMismatchError, DTypeError where a call does not fit the examples, and
    InputError where weights have changed since it was compiled.
    """

    def __init__(
        self, source: TorchSource, plan: CallPlan, engine: Engine, weights: Weights
    ) -> None:
        self.engine = engine
        self.weights = weights
        self.graph_module = source.module
        self._plan = plan
        self._call = Call(engine, source.module, source.constants)
        holders = source.module.graph.find_nodes(op="placeholder")
        self._places = {node.name: k for k, node in enumerate(holders)}
        self._kinds = {n.name: int if is_size(value_of(n)) else torch.Tensor for n in holders}
        self._written = {self._places[name] for kind, name in plan.outputs if kind == "input"}
        self.reset_states()

    def reset_states(self) -> None:
        """Makes the next call the first."""
        self.states = {name: x.detach().clone() for name, x in self._plan.states.items()}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        changed = self.weights.changed()
        if changed is not None:
            raise InputError(
                f"{self.engine.model.name}: weights have changed since it was compiled "
                f"('{changed}'): compile again"
            )
        given: list[Any] = [None] * len(self._places)
        for name, value in self.states.items():
            given[self._places[name]] = value
        flat = self._plan.flat(args, keywords)
        for k, (name, value) in enumerate(zip(self._plan.inputs, flat, strict=True)):
            self._check(k, name, value)
            if name:
                given[self._places[name]] = value
        if self._written:
            self._check_apart(given)
        leaves = self._call(given)
        for value, (kind, name) in zip(leaves, self._plan.outputs, strict=True):
            if kind == "state":
                self.states[name] = value
            elif kind == "input":
                given[self._places[name]].copy_(value)
        return self._plan.result(leaves)

    def _check(self, place: int, name: str, value: Any) -> None:
        label = name or f"argument {place}"
        fixed = self._plan.fixed
        if place in fixed:
            if type(value) is not type(fixed[place]) or value != fixed[place]:
                raise InputError(f"'{label}' is {value!r}, compiled for {fixed[place]!r}")
        elif not isinstance(value, self._kinds[name]):
            words = self._kinds[name].__name__
            raise InputError(f"'{label}' is a {type(value).__name__}, compiled for a {words}")

    def _check_apart(self, given: list[Any]) -> None:
        found = overlapping(given, self._written)
        if found is not None:
            names = list(self._places)
            one, other = (names[k] for k in found)
            raise InputError(
                f"'{one}' is written to and shares memory with '{other}': pass a copy of one"
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "engine":
            raise AttributeError(name)
        return getattr(self.engine, name)

    def __repr__(self) -> str:
        return f"<cuvil.CompiledModule {self.engine.model.name!r}>"
