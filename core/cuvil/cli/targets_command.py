"""`cuvil targets`: the installed backends, and what they compile for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from cuvil.targets.backend import Backend


def targets(as_json: arg.Json = False) -> None:
    """Lists what can be compiled for."""
    from cuvil.cli.console import print_json
    from cuvil.targets.registry import backends

    found = [_plain(backend) for backend in backends()]
    if as_json:
        print_json(found)
        return
    if not found:
        typer.echo("no backend is installed; see 'cuvil doctor'")
    for row in found:
        here = f"; this machine is {row['host']}" if row["host"] else ""
        typer.echo(f"{row['name']} {row['version']}{here}")
        typer.echo(f"  triples:  {', '.join(row['triples'])}")
        typer.echo(f"  names:    {', '.join(row['aliases'])}")
        typer.echo(f"  cpus:     {', '.join(row['cpus'])}")
        typer.echo(f"  features: {', '.join(row['features'])}")


def _plain(backend: Backend) -> dict[str, Any]:
    host = backend.host()
    return {
        "name": backend.name,
        "version": backend.version,
        "host": str(host.triple) if host else None,
        "host_features": [word[1:] for word in host.features] if host else [],
        "triples": list(backend.triples),
        "aliases": dict(backend.aliases),
        "cpus": {cpu: list(features) for cpu, features in backend.cpus.items()},
        "features": list(backend.features),
    }
