"""`cuvil bench`: a compiled model and other engines in turn, in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cuvil.cli.inputs import Array
    from cuvil.cli.peers import Call
    from cuvil.engine.engine import Engine
    from cuvil.options import Options

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
    disable_op_scheduling: arg.DisableOpScheduling = False,
    no_cache: arg.NoCache = False,
    custom: arg.Custom = None,
    remote: Annotated[
        str, typer.Option(metavar="USER@HOST[:PORT]", help="time it there, by ssh and scp")
    ] = "",
    ssh_config: Annotated[str, typer.Option(help="a file of ssh's for --remote")] = "",
    as_json: arg.Json = False,
) -> None:
    """Times a model beside other engines, in turn in one process: ratios are medians of rounds."""
    from cuvil.cli.console import print_json

    options = arg.options_of(
        target=target, cpu=cpu, features=features, opt_level=opt_level, dim=dim, bound=bound,
        precision=precision, variant=variant, passes=passes, disable=disable_rule,
        disable_kernel=disable_kernel, no_winograd=no_winograd, no_graph_fusion=no_graph_fusion,
        disable_op_scheduling=disable_op_scheduling,
    )  # fmt: skip
    wanted = _Wanted(model, options, threads, seconds)
    made = arg.Made(inputs, arg.parse_sizes("--size", size), seed)
    if remote:
        result = _remote(wanted, made, remote, ssh_config, [*(vs or ()), *["kernels"] * kernels])
    else:
        result = _local(wanted, made, arg.split_words(vs), kernels, not no_cache)
    if as_json:
        print_json(result)
    else:
        tell(result)


@dataclass(frozen=True)
class _Wanted:
    """What is timed: a model with the options of its compile, on so many threads, for so long."""

    model: str
    options: Options
    threads: int
    seconds: float

    def about(self, feed: Mapping[str, Array], skipped: Mapping[str, str]) -> dict[str, Any]:
        """What stands beside the figures."""
        shapes = {name: list(array.shape) for name, array in feed.items()}
        return {"skipped": skipped, "threads": self.threads, "model": self.model, "inputs": shapes}


def _local(
    wanted: _Wanted, made: arg.Made, names: list[str], kernels: bool, cache: bool
) -> dict[str, Any]:
    """Figures of this machine."""
    from cuvil.cli.console import progress
    from cuvil.cli.inputs import make_inputs
    from cuvil.cli.models import engine_for
    from cuvil.cli.timing import interleaved

    model, options, threads = wanted.model, wanted.options, wanted.threads
    with progress() as stages:
        engine = engine_for(model, options, threads, cache, stages)
        feed = make_inputs(engine, made.words, made.sizes, made.seed, "random")
        calls = {OWN: own_call(engine, feed)}
        peers, skipped = load_peers(names, model, feed, threads, stages)
        calls |= peers
        stages("measure")
        timings = interleaved({n: c.run for n, c in calls.items()}, budget_s=wanted.seconds)
        result = summary(calls, timings) | wanted.about(feed, skipped)
        if kernels:
            stages("time the kernels")
            result["kernels"] = kernel_rows(engine, model, options, feed)
    return result


def _remote(
    wanted: _Wanted, made: arg.Made, address: str, config: str, others: list[str]
) -> dict[str, Any]:
    """Figures of another machine."""
    from cuvil.cli import remote
    from cuvil.cli.console import progress
    from cuvil.cli.foreign import folder_for
    from cuvil.cli.inputs import inputs_for
    from cuvil.errors import OptionError
    from cuvil.version import VERSION

    if others:
        raise OptionError(f"--remote times {OWN} alone: leave out --vs and --kernels")
    host = remote.parse_host(address, config)
    with progress() as stages:
        stages(f"ask {host}")
        options = remote.options_for(host, wanted.model, wanted.options)
        with folder_for(wanted.model, options, stages) as (folder, scratch):
            feed = inputs_for(
                folder.inputs, folder.symbols, made.words, made.sizes, made.seed, "random"
            )
            stages(f"run on {host}")
            found = remote.time_there(host, folder, feed, scratch, wanted.threads, wanted.seconds)
    row = {
        "median_ms": found.median_ns / 1e6,
        "best_ms": found.best_ns / 1e6,
        "samples": found.samples,
        "settings": f"{OWN} {VERSION}, {found.variant}, threads {found.threads}, on {host}",
    }
    return {"engines": {OWN: row}, "remote": str(host)} | wanted.about(feed, {})


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
