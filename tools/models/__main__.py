"""`python -m tools.models list | build [NAME...]`: see and make the zoo's models."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tools.models import zoo
from tools.models.case import ZooError


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, or 1 when a model asked for could not be had."""
    parser = argparse.ArgumentParser(prog="python -m tools.models", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("list", "name and path of each model"), ("build", "build missing models")):
        command = commands.add_parser(name, help=text)
        command.add_argument("names", nargs="*", metavar="NAME", help="a model; all without one")
    options = parser.parse_args(argv)
    show = _list if options.command == "list" else _build
    failures = [name for name in options.names or zoo.names() if not _shown(name, show)]
    return 1 if failures else 0


def _shown(name: str, show: Callable[[str], str]) -> bool:
    """Print one line about the model; False when it is not to be had."""
    try:
        print(f"{name:22} {show(name)}", flush=True)
    except ZooError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    return True


def _list(name: str) -> str:
    path = zoo.row(name).source.location()
    return f"{path}" if path.exists() else f"(not built) {path}"


def _build(name: str) -> str:
    start = time.monotonic()
    path = zoo.get(name).path
    return f"{path.stat().st_size / 1e6:8.1f} MB {time.monotonic() - start:6.1f} s  {path}"


if __name__ == "__main__":
    sys.exit(main())
