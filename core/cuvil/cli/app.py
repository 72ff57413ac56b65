"""The commands and their order in `cuvil --help`."""

from __future__ import annotations

from typing import Annotated

import typer

from cuvil.cli import (
    bench_command,
    build_command,
    cache_command,
    check_command,
    compile_command,
    doctor_command,
    inspect_command,
    profile_command,
    run_command,
    targets_command,
    verify_command,
)
from cuvil.version import VERSION

GUIDE = """Compiles neural networks to native code.

\b
A first session:
  cuvil check model.onnx                   can it be compiled?
  cuvil compile model.onnx -o build        a library, a header, a manifest
  cuvil run build --input x=random         what does it compute?
  cuvil verify model.onnx                  the same as ONNX Runtime?
  cuvil bench model.onnx --vs onnxruntime  and how fast?

Each command has --help of its own. An error is one line; --debug shows its traceback.
"""

app = typer.Typer(
    help=GUIDE,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cuvil {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="show tracebacks")] = False,
) -> None:
    """Options of all commands."""


_options.__doc__ = GUIDE

app.command("compile")(compile_command.compile_model)
app.command("build")(build_command.build)
app.command("run")(run_command.run)
app.command("check")(check_command.check)
app.command("verify")(verify_command.verify)
app.command("bench")(bench_command.bench)
app.command("inspect")(inspect_command.inspect)
app.command("profile")(profile_command.profile)
app.add_typer(cache_command.app, name="cache")
app.command("targets")(targets_command.targets)
app.command("doctor")(doctor_command.doctor)
