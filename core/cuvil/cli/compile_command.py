"""`cuvil compile`: a model to a library and what a C program needs beside it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from cuvil.aot.write import Artefact
    from cuvil.options import Options

Output = Annotated[
    str, typer.Option("--output", "-o", help="folder, or libNAME.so, libNAME.a, NAME.o")
]
EMIT_HELP = "so, a, o, llvm, asm, mlir; may be repeated or joined by commas"


def compile_model(
    model: arg.AnyModel,
    output: Output = "build",
    name: Annotated[str, typer.Option(help="prefix of every exported symbol")] = "",
    target: arg.Target = "cpu",
    cpu: arg.Cpu = "",
    features: arg.Features = "",
    emit: Annotated[list[str] | None, typer.Option(help=EMIT_HELP)] = None,
    weights: Annotated[str, typer.Option(help="auto, embed or external")] = "auto",
    opt_level: arg.OptLevel = "2",
    precision: arg.Precision = "fp32",
    variant: arg.Variant = "",
    threads: Annotated[int | None, typer.Option(min=1, help="cpus that compile")] = None,
    dim: arg.Dim = None,
    bound: arg.Bound = None,
    dynamic_shape: arg.DynamicShape = None,
    specialize: arg.Specialize = None,
    elements: arg.Elements = None,
    passes: arg.Passes = None,
    disable_rule: arg.DisableRule = None,
    disable_kernel: arg.DisableKernel = None,
    no_winograd: arg.NoWinograd = False,
    graph_fusion: arg.GraphFusion = True,
    disable_op_scheduling: arg.DisableOpScheduling = False,
    memory_plan: arg.MemoryPlan = "static",
    input_spec: arg.InputSpec = None,
    enable_rule: arg.EnableRule = None,
    custom: arg.Custom = None,
    tune: arg.Tune = "0",
    as_json: arg.Json = False,
) -> None:
    """Compiles a model to a native library.

    A C header, build files, a manifest and, where they are not embedded, the weights come with it.
    """
    from cuvil.aot.write import compile_to_folder, split_output
    from cuvil.cli.console import print_json, progress

    folder, stem, kinds = split_output(output)
    options = arg.options_of(
        target=target, cpu=cpu, features=features, opt_level=opt_level, dim=dim, bound=bound,
        dynamic_shape=dynamic_shape, specialize=specialize, elements=elements, precision=precision,
        variant=variant, passes=passes, disable=disable_rule, enable=enable_rule, weights=weights,
        name=name or stem, disable_kernel=disable_kernel, no_winograd=no_winograd, tune=tune,
        no_graph_fusion=not graph_fusion, disable_op_scheduling=disable_op_scheduling,
        memory_plan=memory_plan,
    )  # fmt: skip
    if threads is not None:
        _use_cpus(threads)
    with progress() as stages:
        source = opened(model, input_spec, options, stages)
        made = compile_to_folder(
            source, folder, options, emit=arg.split_words(emit) or kinds, progress=stages
        )
    if as_json:
        files = {kind: str(path) for kind, path in made.files.items()}
        print_json({"files": files, "seconds": stages.seconds, "manifest": made.manifest})
    else:
        tell(made, stages.total)


def opened(model: str, words: list[str] | None, options: Options, stages: Any) -> Any:
    """The source that a word on the command line stands for. Raises cuvil.Error subclasses."""
    from cuvil.cli.input_spec import parse_input_spec
    from cuvil.engine.api import torch_door
    from cuvil.engine.torch_models import is_torch
    from cuvil.errors import OptionError

    spec = parse_input_spec(words)
    if not is_torch(model):
        if words:
            raise OptionError("--input-spec is for models of torch; use --dim for ONNX files")
        return model
    stages("export")
    return torch_door().open_torch(model, spec, options.dynamic, options.name)[0]


def _use_cpus(count: int) -> None:
    """Keeps this process, and the workers that it starts, on so many of its cpus."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def tell(made: Artefact, seconds: float) -> None:
    """Says what a compile made."""
    from cuvil.cli.console import size_text

    data: dict[str, Any] = made.manifest
    variants = ", ".join(v["name"] for v in data["variants"])
    typer.echo(
        f"{made.name}: {data['target']['triple']} ({variants}), "
        f"{len(data['kernels'])} kernels, {size_text(data['weights_bytes'])} of weights, "
        f"{seconds:.1f} s"
    )
    if made.tuned:
        typer.echo(f"  {made.tuned}")
    for path in made.files.values():
        size = f"  {size_text(path.stat().st_size)}" if path.is_file() else "/"
        typer.echo(f"  {path}{size}")
