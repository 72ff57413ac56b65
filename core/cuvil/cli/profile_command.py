"""`cuvil profile`: what each kernel did when, as Chrome trace events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuvil_runtime import Launch


def profile(
    model: arg.ModelOrArtefact,
    output: Annotated[
        str, typer.Option("--output", "-o", help="the trace, for chrome://tracing or Perfetto")
    ] = "trace.json",
    runs: Annotated[int, typer.Option(min=1, help="runs that are recorded")] = 3,
    inputs: arg.Input = None,
    size: arg.Size = None,
    seed: arg.Seed = 0,
    dim: arg.Dim = None,
    opt_level: arg.OptLevel = "2",
    threads: Annotated[int, typer.Option(min=1)] = 1,
    no_cache: arg.NoCache = False,
    custom: arg.Custom = None,
) -> None:
    """Records what each kernel did when.

    A trace with one row per kernel, and the nodes of the model that each computes.
    """
    import json

    from cuvil.cli.console import progress
    from cuvil.cli.inputs import make_inputs
    from cuvil.cli.models import engine_for

    options = arg.options_of(dim=dim, opt_level=opt_level)
    with progress() as stages:
        engine = engine_for(model, options, threads, not no_cache, stages)
        sizes = arg.parse_sizes("--size", size)
        feed = make_inputs(engine, inputs, sizes, seed, "random")
        stages("run")
        engine.profile(feed)
        launches = [launch for _ in range(runs) for launch in engine.profile(feed)[1]]
    with open(output, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": trace_events(launches), "displayTimeUnit": "ms"}, file)
    _tell(launches, runs)
    typer.echo(f"saved to {output}")


def trace_events(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Launches as complete events of the trace format, times in microseconds from the first."""
    rows = {k: i for i, k in enumerate(dict.fromkeys(launch.kernel for launch in launches))}
    start = min((launch.begin_ns for launch in launches), default=0)
    names = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": {"name": kernel}}
        for kernel, row in rows.items()
    ]
    return names + [
        {
            "name": launch.kernel,
            "cat": "kernel",
            "ph": "X",
            "pid": 1,
            "tid": rows[launch.kernel],
            "ts": (launch.begin_ns - start) / 1e3,
            "dur": (launch.end_ns - launch.begin_ns) / 1e3,
            "args": {"nodes": launch.nodes},
        }
        for launch in launches
    ]


def _tell(launches: Sequence[Launch], runs: int) -> None:
    from cuvil.cli.console import print_table

    totals: dict[str, list[float]] = {}
    for launch in launches:
        totals.setdefault(launch.kernel, []).append((launch.end_ns - launch.begin_ns) / 1e3 / runs)
    whole = sum(map(sum, totals.values())) or 1.0
    ordered = sorted(totals.items(), key=lambda item: -sum(item[1]))
    print_table(
        ("us per run", "%", "launches", "kernel"),
        [(sum(t), 100 * sum(t) / whole, len(t) // runs, kernel) for kernel, t in ordered[:20]],
    )
