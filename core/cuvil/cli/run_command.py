"""`cuvil run`: a model on inputs from files or made up; its outputs printed or saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    import numpy as np

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
    dim: arg.Dim = None,
    threads: arg.Threads = None,
    time_limit: Annotated[float, typer.Option(min=0, help="seconds; 0 is none")] = 0.0,
    no_cache: arg.NoCache = False,
    custom: arg.Custom = None,
    as_json: arg.Json = False,
) -> None:
    """Runs a model on given inputs.

    A model is an ONNX file, which is compiled, or what 'cuvil compile' made.
    """
    import numpy as np

    from cuvil.cli.console import print_json, progress
    from cuvil.cli.inputs import make_inputs
    from cuvil.cli.models import engine_for

    with progress() as stages:
        engine = engine_for(model, arg.options_of(dim=dim), threads, not no_cache, stages)
    sizes = arg.parse_sizes("--size", size)
    feed = make_inputs(engine, inputs, sizes, seed)
    results = engine.run(None, feed, time_limit=time_limit)
    named = dict(zip((o.name for o in engine.get_outputs()), results, strict=True))
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
