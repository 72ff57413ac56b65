"""A graph of AOTAutograd as something to call: compiled when it is first called."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import compile_cached, compile_uncached
from cuvil.engine.engine import Engine
from cuvil.errors import Error, UnsupportedError
from cuvil.frontends.torch import Problem, TorchSource, import_fx
from cuvil.integrations.torch_compile.calls import Call
from cuvil.integrations.torch_compile.constants import Constants
from cuvil.integrations.torch_compile.observe import tell
from cuvil.integrations.torch_compile.partition import partitioned
from cuvil.integrations.torch_compile.settings import Settings
from cuvil.integrations.torch_compile.views import Views

__all__ = ["Compiled"]

Run = Callable[[Sequence[Any]], Any]
MOST_CHANGES = 2  # of a weight; from then on it is read anew at every call
MOST_WEIGHTS = 8  # sets of weights for which one graph is compiled; then it runs in eager


class FallbackWarning(UserWarning):
    """A whole graph runs in eager because it could not be compiled; results are right anyway."""


def nothing(args: Sequence[Any]) -> Any:
    """In place of a quick way, where there is none."""


class Compiled:
    """A module of ATen calls, with engines for it.

    module: the graph, for inspection; origin: dynamo's, from which it was made. engines: what runs
    it, by the weights that it was made for. problems: nodes that run in eager, once it has been
    called; failure: why the graph is not one engine. is_part: of a graph that is in parts already.

    statics: ids of parameters and buffers. Weights become part of the code: every call checks that
    they are the same, and unchanged; for others the graph is compiled anew. written: places of
    inputs that are no constants all the same. quick: runs the newest engine, or gives None where
    the call needs another look. made: is told of engines of a graph that writes to nothing.
    """

    _boxed_call = True  # AOTAutograd passes arguments as one list

    def __init__(
        self,
        module: GraphModule,
        *,
        settings: Settings,
        statics: frozenset[int],
        origin: GraphModule | None = None,
        is_part: bool = False,
        written: frozenset[int] = frozenset(),
    ) -> None:
        self.module = module
        self.origin = origin
        self.settings = settings
        self.statics = statics
        self.is_part = is_part
        self.written = set(written)
        self.problems: list[Problem] = []
        self.failure: Error | None = None
        self.views = Views(module, len(written))
        self.names = [n.name for n in module.graph.find_nodes(op="placeholder")]
        if not is_part:
            tell(self)
        self._changes: Counter[int] = Counter()
        self.engines: list[tuple[Constants, Run]] = []
        self.quick: Run = nothing
        self.made: Callable[[Constants, Call], Any] | None = None

    def __call__(self, args: list[Any]) -> Any:
        found = self.quick(args)
        if found is not None:
            return found
        for constants, run in self.engines:
            if constants.hold(args):
                return run(args)
        return self._first(args)

    def _first(self, args: Sequence[Any]) -> Any:
        constants = Constants(args, self.statics, self.written)
        old = next((c for c, _ in self.engines if c.replaced(constants)), None)
        if old is not None:
            self.engines = [known for known in self.engines if known[0] is not old]
            self._changes.update(old.changed(constants))
            often = {k for k, n in self._changes.items() if n >= MOST_CHANGES}
            if not often <= self.written:
                self.written |= often
                constants = Constants(args, self.statics, self.written)
        if len(self.engines) >= MOST_WEIGHTS:
            return self.module(*args)
        run = self._compiled(constants)
        self.engines.insert(0, (constants, run))
        self.quick = run.quick if isinstance(run, Call) else nothing
        if isinstance(run, Call) and self.made is not None and not self.written:
            self.made(constants, run)
        return run(args)

    def _compiled(self, constants: Constants) -> Run:
        known = constants.named(self.names)
        source = TorchSource(self.module, known, "torch_graph")
        try:
            return Call(self._engine(source), self.module, known, constants.placed(), self.views)
        except Error as error:
            if self.settings.fallback == "error":
                raise
            self.failure = error
        self.problems = []
        if not self.is_part:
            try:
                import_fx(self.module, constants=known, problems=self.problems)
            except Error:  # a size that is no dim: no part of it can be told apart
                self.problems = []
        if self.problems:
            return self._in_parts()
        self.give_up(str(self.failure))
        return lambda args: self.module(*args)

    def give_up(self, reason: str) -> None:
        """Says that all of the graph runs in eager, and why."""
        self.failure = self.failure or UnsupportedError(reason)
        warnings.warn(f"a graph runs in eager: {reason}", FallbackWarning, stacklevel=3)

    def _engine(self, source: TorchSource) -> Engine:
        build = compile_cached if self.settings.cache else compile_uncached
        return build(source, Wanted(self.settings.compile_options), self.settings.threads)

    def _in_parts(self) -> Run:
        """What is supported in engines, the rest in eager."""
        bad = {problem.node.name for problem in self.problems}
        whole, parts = partitioned(self.module, bad)
        for name in parts:
            part = Compiled(
                getattr(whole, name), settings=self.settings, statics=self.statics, is_part=True
            )
            setattr(whole, name, _Part(part))
        return lambda args: whole(*args)


class _Part(torch.nn.Module):
    """An engine inside a graph that runs in eager."""

    def __init__(self, compiled: Compiled) -> None:
        super().__init__()
        self.compiled = compiled

    def forward(self, *args: Any) -> Any:
        return self.compiled(list(args))
