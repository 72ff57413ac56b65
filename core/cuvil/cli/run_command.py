"""`cuvil run`: a model on inputs from files or made up; its outputs printed or saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    import numpy as np

    from cuvil.cli.console import Stages
    from cuvil.options import Options

SHOWN = 6  # elements of an output
LISTED = 1000  # elements up to which JSON holds an output's values


def run(
    model: arg.ModelOrArtefact,
    inputs: arg.Input = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="save the outputs to this .npz file")
    ] = None,
    size: arg.Size = None,
    seed: arg.Seed = 0,
    target: arg.Target = "cpu",
    cpu: arg.Cpu = "",
    features: arg.Features = "",
    dim: arg.Dim = None,
    threads: arg.Threads = None,
    time_limit: Annotated[float, typer.Option(min=0, help="seconds; 0 is none")] = 0.0,
    no_cache: arg.NoCache = False,
    custom: arg.Custom = None,
    as_json: arg.Json = False,
) -> None:
    """Runs a model on given inputs.

    A model is an ONNX file, which is compiled, or what 'cuvil compile' made. One for another kind
    of machine runs under qemu's user mode emulator; QEMU_CPU says which cpu that has.
    """
    import numpy as np

    from cuvil.cli.console import print_json, progress
    from cuvil.cli.foreign import check_emulator, foreign_triple

    options = arg.options_of(target=target, cpu=cpu, features=features, dim=dim)
    made = arg.Made(inputs, arg.parse_sizes("--size", size), seed)
    with progress() as stages:
        if triple := foreign_triple(model, options):
            check_emulator(triple)
            named = _emulated(model, options, made, threads, stages)
        else:
            named = _native(model, options, made, threads, not no_cache, time_limit, stages)
    if output is not None:
        arrays: dict[str, Any] = {name: _savable(value) for name, value in named.items()}
        np.savez(output, **arrays)
    if as_json:
        print_json({name: _summary(value) for name, value in named.items()})
        return
    for name, value in named.items():
        typer.echo(f"{name}: {_type(value)} {list(value.shape)}  {_values(value)}")
    if output is not None:
        typer.echo(f"saved to {output}")


def _native(
    model: str, options: Options, made: arg.Made, threads: int | None, cache: bool,
    time_limit: float, stages: Stages,
) -> dict[str, Any]:  # fmt: skip
    """Outputs by name, on this machine."""
    from cuvil.cli.inputs import make_inputs
    from cuvil.cli.models import engine_for, is_artefact
    from cuvil.options import Options

    if is_artefact(model) and options == Options(target=options.target):
        options = Options()  # its target, as foreign_triple has checked
    engine = engine_for(model, options, threads, cache, stages)
    feed = make_inputs(engine, made.words, made.sizes, made.seed)
    results = engine.run(None, feed, time_limit=time_limit)
    return dict(zip((o.name for o in engine.get_outputs()), results, strict=True))


def _emulated(
    model: str, options: Options, made: arg.Made, threads: int | None, stages: Stages
) -> dict[str, Any]:
    """Outputs by name, on another kind of machine."""
    from cuvil.cli.foreign import folder_for, run_emulated
    from cuvil.cli.inputs import inputs_for

    with folder_for(model, options, stages) as (folder, scratch):
        feed = inputs_for(folder.inputs, folder.symbols, made.words, made.sizes, made.seed)
        return run_emulated(folder, feed, scratch, threads, stages)


def _type(value: np.ndarray[Any, Any]) -> str:
    return "string" if value.dtype == object else str(value.dtype)


def _savable(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Strings as numpy's own text, which its files hold."""
    return value.astype(str) if value.dtype == object else value


def _summary(value: np.ndarray[Any, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = {"dtype": _type(value), "shape": list(value.shape)}
    if value.size and value.dtype != object:
        numbers = value.astype("float64")
        summary |= {"min": numbers.min(), "max": numbers.max(), "mean": numbers.mean()}
    if value.size <= LISTED:
        summary["values"] = value.astype("float64") if value.dtype.kind == "V" else value
    return summary


def _values(value: np.ndarray[Any, Any]) -> str:
    if value.dtype == object:
        words = ", ".join(json.dumps(v, ensure_ascii=False) for v in value.ravel()[:SHOWN])
        return f"[{words}{', ...' if value.size > SHOWN else ''}]"
    first = ", ".join(f"{v:.6g}" for v in value.reshape(-1)[:SHOWN].tolist())
    if value.size <= SHOWN:
        return f"[{first}]"
    numbers = value.astype("float64")
    return f"[{first}, ...]  min {numbers.min():.6g}  max {numbers.max():.6g}"
