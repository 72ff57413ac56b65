"""`cuvil bench`: a compiled model and other engines in turn, in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cuvil.cli.inputs import Array
    from cuvil.cli.peers import Call
    from cuvil.engine.engine import Engine

OWN = "cuvil"


def bench(
    model: arg.ModelOrArtefact,
    vs: Annotated[
        list[str] | None,
        typer.Option(help="engines to compare with: onnxruntime, openvino, torch, ..."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="of every engine")] = 1,
    kernels: Annotated[bool, typer.Option("--kernels", help="time of every kernel too")] = False,
    seconds: Annotated[float, typer.Option(min=0, help="how long to measure, about")] = 5.0,
    inputs: arg.Input = None,
    size: arg.Size = None,
    seed: arg.Seed = 0,
    target: arg.Target = "cpu",
    cpu: arg.Cpu = "",
    features: arg.Features = "",
    dim: arg.Dim = None,
    bound: arg.Bound = None,
    opt_level: arg.OptLevel = "2",
    precision: arg.Precision = "fp32",
    variant: arg.Variant = "",
    passes: arg.Passes = None,
    disable_rule: arg.DisableRule = None,
    disable_kernel: arg.DisableKernel = None,
    no_winograd: arg.NoWinograd = False,
    no_graph_fusion: arg.NoGraphFusion = False,
    no_cache: arg.NoCache = False,
    custom: arg.Custom = None,
    as_json: arg.Json = False,
) -> None:
    """Times a model beside other engines, in turn in one process: ratios are medians of rounds."""
    from cuvil.cli.console import print_json, progress
    from cuvil.cli.inputs import make_inputs
    from cuvil.cli.models import engine_for
    from cuvil.cli.timing import interleaved

    options = arg.options_of(
        target=target, cpu=cpu, features=features, opt_level=opt_level, dim=dim, bound=bound,
        precision=precision, variant=variant, passes=passes, disable=disable_rule,
        disable_kernel=disable_kernel, no_winograd=no_winograd, no_graph_fusion=no_graph_fusion,
    )  # fmt: skip
    with progress() as stages:
        engine = engine_for(model, options, threads, not no_cache, stages)
        sizes = arg.parse_sizes("--size", size)
        feed = make_inputs(engine, inputs, sizes, seed, "random")
        calls = {OWN: own_call(engine, feed)}
        peers, skipped = load_peers(arg.split_words(vs), model, feed, threads, stages)
        calls |= peers
        stages("measure")
        timings = interleaved({n: c.run for n, c in calls.items()}, budget_s=seconds)
        shapes = {n: list(a.shape) for n, a in feed.items()}
        asked = {"skipped": skipped, "threads": threads, "model": model, "inputs": shapes}
        result = summary(calls, timings) | asked
        if kernels:
            stages("time the kernels")
            result["kernels"] = kernel_rows(engine, model, options, feed)
    if as_json:
        print_json(result)
    else:
        tell(result)


def own_call(engine: Engine, feed: Mapping[str, Array]) -> Call:
    """The engine on fixed inputs and, where shapes allow it, fixed outputs."""
    from cuvil.cli.peers import Call
    from cuvil.errors import InputError
    from cuvil.version import VERSION

    model, run = engine.model, engine.model.run
    arrays = [feed[i.name] for i in engine.get_inputs()]
    outputs = run(arrays)
    fixed = True
    try:
        run(arrays, outputs)
    except InputError:  # an output whose shape only a run tells
        fixed = False
    settings = f"cuvil {VERSION}, {model.variant}, threads {model.threads}"
    return Call(
        run=(lambda: run(arrays, outputs)) if fixed else (lambda: run(arrays)),
        outputs=lambda: outputs,
        settings=settings if fixed else f"{settings}, outputs allocated anew",
    )


def load_peers(
    names: list[str], model: str, feed: Mapping[str, Array], threads: int, stages: Any
) -> tuple[dict[str, Call], dict[str, str]]:
    """The engines that can run the model, and the reasons of those that cannot."""
    from cuvil.cli.models import is_artefact
    from cuvil.cli.peers import PeerError, peer

    calls: dict[str, Call] = {}
    skipped: dict[str, str] = {}
    chosen = {name: peer(name) for name in names}
    for name, engine in chosen.items():
        stages(f"load {name}")
        try:
            if is_artefact(model):
                raise PeerError(f"{name} takes the ONNX file, not what was compiled from it")
            calls[name] = engine.load(model, feed, threads)
        except PeerError as error:
            skipped[name] = str(error)
    return calls, skipped


def summary(calls: Mapping[str, Call], timings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, medians in milliseconds, and ratios: above 1 means that cuvil is faster."""
    import numpy as np

    from cuvil.cli.timing import speedups

    ratios = speedups(timings, OWN)
    own = calls[OWN].outputs()
    rows: dict[str, Any] = {}
    for name, timing in timings.items():
        rows[name] = {
            "median_ms": timing.median * 1e3,
            "best_ms": timing.best * 1e3,
            "spread": timing.spread,
            "samples": len(timing.samples),
            "settings": calls[name].settings,
        }
        if name != OWN:
            pairs = zip(own, calls[name].outputs(), strict=True)
            difference = max(
                (np.abs(a.astype("f8") - b.astype("f8")).max(initial=0) for a, b in pairs),
                default=0.0,
            )
            rows[name] |= {"ratio": ratios[name], "max_difference": float(difference)}
    return {"engines": rows}


def kernel_rows(
    engine: Engine, model: str, options: Any, feed: Mapping[str, Array]
) -> list[dict[str, Any]]:
    """Every launch with its time, share and, where known, rate."""
    from cuvil.cli.kernels import kernel_times, node_flops
    from cuvil.cli.models import is_artefact

    flops = {} if is_artefact(model) else node_flops(model, options, feed)
    times = kernel_times(engine, feed, flops=flops)
    total = sum(t.seconds for t in times) or 1.0
    return [
        {
            "kernel": t.kernel,
            "us": t.seconds * 1e6,
            "share": t.seconds / total,
            "gflops": t.gflops,
            "nodes": t.nodes,
        }
        for t in times
    ]


def tell(result: Mapping[str, Any]) -> None:
    """Prints a result for people."""
    from cuvil.cli.console import note, print_table

    shapes = ", ".join(f"{n} {s}" for n, s in result["inputs"].items())
    typer.echo(f"{result['model']}: {shapes}, threads {result['threads']}")
    rows = [
        (name, row["median_ms"], row["best_ms"], _ratio(row), row["settings"])
        for name, row in result["engines"].items()
    ]
    print_table(("engine", "median ms", "best ms", "cuvil is", "settings"), rows)
    for reason in result["skipped"].values():
        note(reason)
    if "kernels" in result:
        typer.echo("")
        kernels = sorted(result["kernels"], key=lambda k: -k["us"])
        print_table(
            ("us", "%", "GFLOP/s", "kernel", "nodes"),
            [
                (k["us"], 100 * k["share"], _rate(k["gflops"]), k["kernel"], k["nodes"])
                for k in kernels
            ],
        )


def _ratio(row: Mapping[str, Any]) -> str:
    return f"{row['ratio']:.2f}x as fast" if "ratio" in row else ""


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
