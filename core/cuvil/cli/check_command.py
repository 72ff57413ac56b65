"""`cuvil check`: all that keeps a model from being compiled, at once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from cuvil.frontends.onnx.check import Problem

NAMES_SHOWN = 5


def check(
    model: arg.ModelFile,
    dim: arg.Dim = None,
    elements: arg.Elements = None,
    custom: arg.Custom = None,
    as_json: arg.Json = False,
) -> None:
    """Lists all that is not supported in a model.

    With the names of the nodes and what to do about each. The exit status is 1 where there is one.
    """
    from cuvil.cli.console import print_json, progress
    from cuvil.frontends.onnx import check_model

    with progress() as stages:
        stages("check")
        problems = check_model(
            model,
            dims=arg.parse_sizes("--dim", dim),
            elements=arg.parse_sizes("--elements", elements),
        )
    if as_json:
        rows = [asdict(p) | {"count": p.count} for p in problems]
        print_json({"model": model, "supported": not problems, "problems": rows})
    elif problems:
        for problem in problems:
            _tell(problem)
        typer.echo(f"{model}: {sum(max(p.count, 1) for p in problems)} nodes are not supported")
    else:
        typer.echo(f"{model}: every operator is supported")
    raise typer.Exit(int(bool(problems)))


def _tell(problem: Problem) -> None:
    what = f"{problem.op} ({problem.domain} opset {problem.opset})" if problem.op else "the model"
    where = f" in {problem.path}" if problem.path else ""
    count = f", {problem.count} nodes{where}" if problem.count else ""
    typer.echo(f"{what}{count}: {problem.reason}")
    if problem.nodes:
        more = ", ..." if problem.count > NAMES_SHOWN else ""
        typer.echo(f"  nodes: {', '.join(problem.nodes[:NAMES_SHOWN])}{more}")
    typer.echo(f"  way out: {problem.way_out}")
