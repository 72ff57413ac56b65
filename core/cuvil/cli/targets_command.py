"""`cuvil targets`: the backends that are installed or known, and what they compile for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from cuvil.targets.backend import Backend


def targets(as_json: arg.Json = False) -> None:
    """Lists what can be compiled for: triples, cpus and features of each installed backend, the
    backends that are known but not installed, and those that do not load."""
    from cuvil.cli.console import print_json
    from cuvil.targets.registry import backends, scan

    rows = [_plain(backend) for backend in backends()]
    missing = _not_installed()
    broken = [str(error) for error in scan()[1]]
    if as_json:
        print_json({"backends": rows, "not_installed": missing, "broken": broken})
        return
    if not rows:
        typer.echo("no backend is installed; see 'cuvil doctor'")
    for row in rows:
        _tell(row)
    if missing:
        typer.echo("not installed")
    for package, architectures in missing.items():
        typer.echo(f"  pip install {package}: {', '.join(architectures)}")
    for reason in broken:
        typer.echo(f"does not load: {reason}")


def _tell(row: dict[str, Any]) -> None:
    what = "; an accelerator" if row["accelerator"] else ""
    here = f"; this machine is {row['host']}" if row["host"] else ""
    typer.echo(f"{row['name']} {row['version']} ({row['package']}){what}{here}")
    for title in ("triples", "names", "cpus", "features"):
        words = row["aliases" if title == "names" else title]
        if words:
            typer.echo(f"  {title + ':':<9} {', '.join(words)}")


def _plain(backend: Backend) -> dict[str, Any]:
    host = backend.host()
    return {
        "name": backend.name,
        "version": backend.version,
        "package": backend.package.replace("_", "-"),
        "accelerator": backend.is_accelerator,
        "host": str(host.triple) if host else None,
        "host_features": [word[1:] for word in host.features] if host else [],
        "triples": list(backend.triples),
        "aliases": dict(backend.aliases),
        "cpus": {cpu: list(features) for cpu, features in backend.cpus.items()},
        "features": {name: list(f.implies) for name, f in backend.features.items()},
    }


def _not_installed() -> dict[str, list[str]]:
    """Packages of backends that are not here: package -> architectures."""
    from cuvil.targets.registry import installed, packages

    found: dict[str, list[str]] = {}
    for architecture, package in packages().items():
        if package not in installed():
            found.setdefault(package, []).append(architecture)
    return found
