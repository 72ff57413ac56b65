"""`cuvil verify`: a compiled model against an oracle, outputs or every value inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuvil.cli.compare import Comparison, Tolerance
    from cuvil.cli.console import Stages
    from cuvil.cli.oracles import Feed
    from cuvil.engine.engine import Engine
    from cuvil.options import Options

INSIDE = 10.0
"""Values inside a model may be so much further off: what follows evens rounding out."""

OracleName = Annotated[str, typer.Option(help="onnxruntime, reference or torch")]


def verify(
    model: arg.ModelFile,
    oracle: OracleName = "onnxruntime",
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="compare the values inside the model too")
    ] = False,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="name the first rule application that moves numbers")
    ] = False,
    artefact: Annotated[
        str | None, typer.Option(help="check this compiled .so, .o or folder instead of compiling")
    ] = None,
    rtol: Annotated[float, typer.Option(help="allowed: atol + rtol |reference|")] = 1e-4,
    atol: Annotated[
        float | None, typer.Option(help="default: 1e-5 of the largest |reference|")
    ] = None,
    inputs: arg.Input = None,
    size: arg.Size = None,
    seed: arg.Seed = 0,
    seeds: Annotated[int, typer.Option(min=1, help="how many sets of random inputs")] = 3,
    memory: Annotated[int, typer.Option(min=1, help="MB of values at a time, per layer")] = 256,
    dim: arg.Dim = None,
    opt_level: arg.OptLevel = "2",
    disable_rule: arg.DisableRule = None,
    no_winograd: arg.NoWinograd = False,
    no_cache: arg.NoCache = False,
    custom: arg.Custom = None,
    as_json: arg.Json = False,
) -> None:
    """Compares a compiled model with an oracle.

    Names the first value that drifts; the exit status is then 1. Of an artefact the files are
    compared with the manifest, too, all bytes of the weights among them.
    """
    from cuvil.cli.compare import Tolerance
    from cuvil.cli.console import print_json, progress
    from cuvil.cli.inputs import make_inputs

    options = arg.options_of(
        opt_level=opt_level, dim=dim, disable=disable_rule, no_winograd=no_winograd
    )
    tolerance = Tolerance(rtol, atol)
    sizes = arg.parse_sizes("--size", size)
    with progress() as stages:
        engine = _engine(model, artefact, options, not no_cache, stages)
        feeds = [make_inputs(engine, inputs, sizes, seed + i, "random") for i in range(seeds)]
        found = _outputs(model, engine.run, oracle, options, feeds, tolerance, stages)
        result: dict[str, Any] = {"model": model, "oracle": oracle, "outputs": found}
        if per_layer:
            result["layers"] = _layers(
                model, oracle, options, feeds[0], tolerance, memory, sizes, stages
            )
        if bisect:
            result["bisect"] = _bisect(model, options, feeds[0], tolerance, stages)
    good = result["agrees"] = _judged(result)
    if as_json:
        print_json(result)
    elif good:
        typer.echo(f"{model}: agrees with {oracle} on {seeds} sets of inputs")
    raise typer.Exit(int(not good))


def _engine(
    model: str, artefact: str | None, options: Options, cache: bool, stages: Stages
) -> Engine:
    """What is to be checked: the artefact, or the model compiled."""
    from cuvil.aot.check import check_artefact
    from cuvil.cli.console import note
    from cuvil.cli.models import engine_for, is_artefact
    from cuvil.engine.loading import load
    from cuvil.errors import ModelError

    if is_artefact(model):
        raise ModelError(
            f"{model} is compiled already: give the ONNX file it came from, and --artefact {model}"
        )
    if not artefact:
        return engine_for(model, options, None, cache, stages)
    stages("check files")
    note(check_artefact(artefact))
    return load(artefact)


def _outputs(
    model: str, run: Any, name: str, options: Options, feeds: Sequence[Feed], tolerance: Tolerance,
    stages: Stages,
) -> list[Comparison]:  # fmt: skip
    """The comparison of every output, the furthest out of all inputs."""
    from cuvil.cli.compare import compare
    from cuvil.cli.oracles import Source, oracle

    stages(f"compare with {name}")
    expected = oracle(name, Source(model, dims=options.dims))
    found: dict[str, list[Comparison]] = {}
    for feed in feeds:
        run(None, feed)  # refuses what does not fit in words of our own
        reference = expected(feed)
        got = dict(zip(reference, run(list(reference), feed), strict=True))
        for output, array in reference.items():
            found.setdefault(output, []).append(compare(output, got[output], array, tolerance))
    return [max(made, key=lambda c: (not c.agrees, c.error)) for made in found.values()]


def _layers(
    model: str, oracle: str, options: Options, feed: Feed, tolerance: Tolerance, memory: int,
    sizes: dict[str, int], stages: Stages,
) -> Any:  # fmt: skip
    from cuvil.cli.layers import LayerCheck, inner_values

    stages("list the values")
    values = inner_values(model, {**sizes, **options.dims})
    check = LayerCheck(model, options, oracle, tolerance.times(INSIDE))
    return check.run(values, feed, memory * 1_000_000, stages)


def _bisect(
    model: str, options: Options, feed: Feed, tolerance: Tolerance, stages: Stages
) -> dict[str, Any]:
    from cuvil.cli.rule_bisect import find_culprit

    culprit = find_culprit(model, options, feed, tolerance, stages)
    if culprit is None:
        return {"culprit": None}
    application = culprit.application
    return {
        "culprit": application.rule,
        "number": application.number,
        "total": culprit.total,
        "phase": application.phase,
        "place": application.place,
        "shown_by": culprit.shown_by,
    }


def _judged(result: dict[str, Any]) -> bool:
    """Whether all agrees; tells what does not, on stderr, and makes the result plain data."""
    outputs: list[Comparison] = result["outputs"]
    good = all(c.agrees for c in outputs)
    for comparison in outputs:
        if not comparison.agrees:
            typer.echo(f"output {comparison}", err=True)
    result["outputs"] = [c.plain() for c in outputs]
    if "layers" in result:
        good &= _judged_layers(result)
    if "bisect" in result:
        good &= _judged_bisect(result["bisect"])
    return good


def _judged_layers(result: dict[str, Any]) -> bool:
    layers = result["layers"]
    first = layers.first_drift
    result["layers"] = {
        "compared": len(layers.compared),
        "drifting": [
            c.plain() | {"node": v.node, "op": v.op} for v, c in layers.compared if not c.agrees
        ],
        "skipped": layers.skipped,
    }
    typer.echo(
        f"{len(layers.compared)} inner values compared, {len(layers.skipped)} skipped", err=True
    )
    if first is not None:
        value, comparison = first
        typer.echo(f"the first that drifts, of node {value.node} ({value.op}): {comparison}")
    return first is None


def _judged_bisect(found: dict[str, Any]) -> bool:
    if found["culprit"] is None:
        typer.echo(
            "no rule moves the numbers of the interpreter: what drifts, if anything does, comes "
            "from code generation (--per-layer finds where)",
            err=True,
        )
        return True
    typer.echo(
        f"the numbers move with application {found['number']} of {found['total']}: rule "
        f"'{found['culprit']}', phase {found['phase']}, at {found['place']}: {found['shown_by']}"
    )
    found["shown_by"] = found["shown_by"].plain()
    return False
