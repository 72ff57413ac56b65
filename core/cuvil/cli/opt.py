"""`cuvil-opt`: runs rewrite phases on IR text, for people who write rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import cuvil.ops
from cuvil.errors import Error, OptionError
from cuvil.ir.graph import Graph, GraphOp
from cuvil.ir.pool import Pool
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.text import parse_ir, print_ir
from cuvil.rewrite.engine import Application, RewriteOptions, run_phases, run_rules
from cuvil.rewrite.registry import Selection, load_rules, unknown
from cuvil.rewrite.rule import PHASES
from cuvil.rewrite.verify import verify_structure

assert cuvil.ops is not None  # importing it registers the primitives
Strs = list[str]


def read_graph(text: str, name: str = "<text>") -> Graph:
    """The graph of a module in MLIR text. Constants with a key are unknown: its pool is empty.

    ModelError for text that does not parse, or that is no single `cuvil.graph`.
    """
    module = parse_ir(text, name)
    ops = list(module.body.block.ops)
    if len(ops) != 1 or not isinstance(ops[0], GraphOp):
        raise OptionError(f"{name}: a module with one cuvil.graph is expected")
    return Graph(module, Pool())


def optimize(
    graph: Graph,
    phases: Strs,
    rules: Strs,
    selection: Selection,
    print_after: Strs,
    stop_after: int | None = None,
    verify_each: bool = False,
) -> dict[str, int]:
    """Runs the phases, or only the named rules, on a graph; gives the counts of applications."""
    known = {rule.name: rule for rule in load_rules()}
    for name in [*rules, *print_after]:
        if name not in known and name not in (*PHASES, "cse"):
            raise unknown("rule", name, known)
    wanted = tuple(phases or PHASES)
    for name in wanted:
        if name not in PHASES:
            raise OptionError(f"unknown phase '{name}'; known: {', '.join(PHASES)}")

    def watch(application: Application, graph: Graph) -> None:
        if verify_each:
            verify_structure(graph)
        if application.rule in print_after:
            number = f"{application.number}: {application.rule} at {application.place}"
            typer.echo(f"// {number}\n{print_ir(graph.module)}", nl=False)

    def after_phase(phase: str, graph: Graph) -> None:
        if phase in print_after:
            typer.echo(f"// after {phase}\n{print_ir(graph.module)}", nl=False)

    if rules:
        options = RewriteOptions(Selection(disable=("cse",)), stop_after, watch)
        return run_rules(graph, [known[name] for name in rules], options).counts
    options = RewriteOptions(selection, stop_after, watch, after_phase, wanted)
    return run_phases(graph, options).counts


def list_all() -> None:
    """Prints the rules by phase, then the primitives."""
    for phase in PHASES:
        typer.echo(f"{phase}:")
        for rule in load_rules():
            if rule.phase == phase:
                off = "" if rule.on else " (off)"
                typer.echo(f"  {rule.name:26}{off} {' '.join(rule.doc.split())}")
    typer.echo("primitives:")
    for name, record in sorted(PRIMITIVES.items()):
        typer.echo(f"  {name:26} {', '.join(sorted(record.tags))}")


def run(
    file: Annotated[str, typer.Argument(help="IR text; - is standard input")] = "-",
    phase: Annotated[Strs | None, typer.Option(help="run this phase only; may be repeated")] = None,
    rule: Annotated[Strs | None, typer.Option(help="run this rule only; may be repeated")] = None,
    passes: Annotated[
        Strs | None, typer.Option("--pass", help="group of rules to run; may be repeated")
    ] = None,
    enable_rule: Annotated[Strs | None, typer.Option(help="switch a rule on")] = None,
    disable_rule: Annotated[Strs | None, typer.Option(help="switch a rule off")] = None,
    print_after: Annotated[
        Strs | None, typer.Option(help="print the IR after every application of a rule, or a phase")
    ] = None,
    stop_after: Annotated[int | None, typer.Option(help="stop after so many applications")] = None,
    verify_each: Annotated[bool, typer.Option(help="verify after every application")] = False,
    stats: Annotated[bool, typer.Option(help="say on stderr what was applied how often")] = False,
    locations: Annotated[bool, typer.Option(help="print source locations")] = False,
    list_: Annotated[bool, typer.Option("--list", help="list rules and primitives")] = False,
) -> None:
    """Rewrites IR text by rules and prints the result."""
    if list_:
        list_all()
        return
    selection = Selection(
        None if passes is None else tuple(passes),
        tuple(disable_rule or ()),
        tuple(enable_rule or ()),
    )
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        graph = read_graph(text, file)
        counts = optimize(
            graph, phase or [], rule or [], selection, print_after or [], stop_after, verify_each
        )
    except (Error, OSError, UnicodeDecodeError) as error:
        typer.echo(f"cuvil-opt: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(print_ir(graph.module, locations), nl=False)
    if stats:
        for name, count in counts.items():
            typer.echo(f"{count:6} {name}", err=True)


def main() -> None:
    """The command."""
    typer.run(run)


if __name__ == "__main__":
    main()
