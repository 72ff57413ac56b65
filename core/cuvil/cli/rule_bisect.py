"""Finding the rule application after which a model's numbers move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuvil.cli.compare import Comparison, Tolerance, compare_all
from cuvil.cli.oracles import Feed
from cuvil.frontends.onnx import import_model
from cuvil.ir.graph import Graph
from cuvil.ops import interpreter
from cuvil.options import Options
from cuvil.pipeline import selection
from cuvil.rewrite.engine import Application, RewriteOptions, run_phases


@dataclass(frozen=True)
class Culprit:
    """The first application that moves numbers, and the output that shows it."""

    application: Application
    total: int
    shown_by: Comparison


def find_culprit(
    path: str,
    options: Options,
    feed: Feed,
    tolerance: Tolerance,
    progress: Callable[[str], None] = lambda stage: None,
) -> Culprit | None:
    """Which application of a rule changes what the interpreter computes; None when none does.

    The graph is rewritten anew for every try and stopped after so many applications; a search
    by halves finds the first that matters, as numbers that have moved do not move back.
    """

    def graph() -> Graph:
        made = import_model(path, dims=dict(options.dims))
        made.bounds.update(options.bounds)
        return made

    def drift(count: int | None) -> tuple[Comparison | None, list[Application]]:
        made = graph()
        report = run_phases(made, RewriteOptions(selection(options), stop_after=count))
        progress(f"interpret after {report.total} applications")
        found = compare_all(interpreter.run(made, feed), reference, tolerance)
        return next((c for c in found if not c.agrees), None), report.applications

    progress("interpret the graph as imported")
    reference = interpreter.run(graph(), feed)
    worst, applications = drift(None)
    if worst is None:
        return None
    low, high = 0, len(applications)  # right after low applications, wrong after high
    while high - low > 1:
        middle = (low + high) // 2
        shown, _ = drift(middle)
        low, high, worst = (low, middle, shown) if shown else (middle, high, worst)
    return Culprit(applications[high - 1], len(applications), worst)
