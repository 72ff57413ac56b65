"""`cuvil build`: what a project file says, to a library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from cuvil.cli.project import Project
    from cuvil.options import Options


def build(
    project: Annotated[
        str, typer.Argument(metavar="[FILE]", help="a project file, or its folder")
    ] = ".",
    as_json: arg.Json = False,
) -> None:
    """Compiles the model of a project file, cuvil.yaml.

    Its keys: model.source (hf://org/name, a folder of save_pretrained, a model file), model.task,
    model.max_length, model.pad_to_multiple_of, precision, quantization.mode, quantization.data,
    opt_level, tune, target.platform, target.cpu, target.features, target.runtime, name, output.
    """
    from cuvil.aot.write import compile_to_folder, split_output
    from cuvil.cli.compile_command import tell
    from cuvil.cli.console import print_json, progress
    from cuvil.cli.project import RUNTIMES, read_project

    read = read_project(project)
    folder, stem, kinds = split_output(read.output)
    kinds = (RUNTIMES[read.runtime],) if read.runtime else kinds
    options = arg.options_of(
        target=read.platform, cpu=read.cpu, features=read.features, precision=read.precision,
        opt_level=str(read.opt_level), name=read.name or stem, tune=read.tune,
    )  # fmt: skip
    with progress() as stages, _source(read, options, stages) as (source, options):
        made = compile_to_folder(source, folder, options, emit=kinds, progress=stages)
    if as_json:
        files = {kind: str(path) for kind, path in made.files.items()}
        print_json({"files": files, "seconds": stages.seconds, "manifest": made.manifest})
    else:
        tell(made, stages.total)


@contextmanager
def _source(project: Project, options: Options, stages: Any) -> Iterator[tuple[Any, Options]]:
    """What is compiled, and with which options."""
    from cuvil.cli.compile_command import opened

    if project.mode:
        with _quantised(project, options, stages) as found:
            yield found
    elif not project.of_transformers:
        yield opened(project.source, None, options, stages), options
    else:
        stages("export")
        yield (
            _transformers().open_pretrained(
                project.task, project.source, project.max_length, project.pad_to_multiple_of,
                options.name,
            ),
            options,
        )  # fmt: skip


@contextmanager
def _quantised(project: Project, options: Options, stages: Any) -> Iterator[tuple[str, Options]]:
    """A model of transformers becomes a file of ONNX first."""
    import tempfile
    from dataclasses import replace
    from pathlib import Path

    from cuvil.cli.quantize import PRODUCTS, quantised

    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        file = project.source
        if project.of_transformers:
            stages("export")
            made, promised = _transformers().export_onnx(
                project.task, project.source, Path(folder), project.max_length,
                project.pad_to_multiple_of,
            )  # fmt: skip
            file, options = str(made), replace(options, dynamic=promised)
        stages("quantize")
        only = PRODUCTS if project.of_transformers else None
        with quantised(file, project.mode, project.data, only) as found:
            yield found, options


def _transformers() -> Any:
    """The front end for folders of transformers. UnsupportedError where it is not installed."""
    from importlib import import_module

    from cuvil.errors import UnsupportedError

    try:
        return import_module("cuvil.integrations.transformers.source")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"models of Hugging Face need torch and transformers: {error}; "
            "pip install torch transformers"
        ) from error
