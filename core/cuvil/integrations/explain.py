"""`cuvil.explain`: what of a model or function is compiled, what is not, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._dynamo.utils import counters

from cuvil.frontends.torch import Problem
from cuvil.integrations.torch_compile.backend import backend
from cuvil.integrations.torch_compile.compiled import Compiled
from cuvil.integrations.torch_compile.observe import observed

__all__ = ["Explanation", "GraphReport", "explain"]


@dataclass(frozen=True)
class GraphReport:
    """One graph that torch captured.

    nodes: its calls of ATen operators. problems: those that run in eager, each with the line of
    the user's source and the reason. failure: why none of it is compiled, where that is so.
    """

    nodes: int
    problems: tuple[Problem, ...]
    failure: str

    def __str__(self) -> str:
        if self.failure:
            return f"{self.nodes} operators, all in eager: {self.failure}"
        lines = [f"{self.nodes} operators, {self.nodes - len(self.problems)} compiled"]
        return "\n".join([*lines, *(f"  in eager: {p}" for p in self.problems)])


@dataclass(frozen=True)
class Explanation:
    """What `torch.compile(..., backend="cuvil")` makes of a call; `str` of it is for people.

    breaks: why torch itself left the graph, where it did.
    """

    graphs: tuple[GraphReport, ...]
    breaks: tuple[str, ...]

    @property
    def native(self) -> bool:
        """Whether all is in one compiled graph."""
        report = self.graphs[0] if len(self.graphs) == 1 else None
        return report is not None and not (report.problems or report.failure or self.breaks)

    def __str__(self) -> str:
        if not self.graphs:
            return "\n".join(["no graph was captured", *self.breaks])
        lines = [f"graph {k}: {graph}" for k, graph in enumerate(self.graphs)]
        return "\n".join([*lines, *(f"torch left the graph: {text}" for text in self.breaks)])


def explain(model: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Runs a module or function once through the backend and says what became of it.

    A function with an explanation of its own (`__cuvil_explain__`) gives that instead. Gradients
    are off meanwhile. Errors of the model itself pass through.
    """
    own = getattr(model, "__cuvil_explain__", None)
    if own is not None:
        return own(*args, **keywords)
    before = dict(counters["graph_break"])
    with torch.no_grad(), observed() as graphs:
        torch.compile(model, backend=partial(backend))(*args, **keywords)
    left = [text for text, n in counters["graph_break"].items() if n > before.get(text, 0)]
    return Explanation(tuple(map(_report, graphs)), tuple(left))


def _report(compiled: Compiled) -> GraphReport:
    calls = compiled.module.graph.nodes
    count = sum(isinstance(n.target, torch._ops.OpOverload) for n in calls)
    whole = not compiled.problems and compiled.failure is not None
    return GraphReport(count, tuple(compiled.problems), str(compiled.failure) if whole else "")
