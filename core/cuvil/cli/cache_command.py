"""`cuvil cache`: what the compile cache holds, and making it smaller."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from cuvil.cli import arguments as arg

if TYPE_CHECKING:
    from cuvil.engine.cache_store import Store

app = typer.Typer(help="Shows or empties the compile cache.", no_args_is_help=True)


@app.command()
def path() -> None:
    """Prints the cache's folder: CUVIL_CACHE_DIR, or cuvil in the user's cache folder."""
    from cuvil.engine.cache_store import default_root

    typer.echo(default_root())


@app.command()
def ls(as_json: arg.Json = False) -> None:
    """Lists the compiled models, the most recently used first."""
    from cuvil.cli.console import print_json, print_table, size_text

    entries = _store().entries()
    if as_json:
        print_json([{**e.__dict__, "folder": str(e.folder)} for e in entries])
        return
    rows = [
        (e.model or "?", e.target, size_text(e.bytes), _ago(e.used), e.name[:12]) for e in entries
    ]
    print_table(("model", "target", "size", "used", "name"), rows)
    typer.echo(f"{len(entries)} entries, {size_text(sum(e.bytes for e in entries))}")


@app.command()
def clear() -> None:
    """Removes everything from the cache."""
    store = _store()
    count = len(store.entries())
    store.clear()
    typer.echo(f"removed {count} entries from {store.root}")


@app.command()
def prune(
    size: Annotated[
        str, typer.Option("--max-size", help="e.g. 500MB; default: CUVIL_CACHE_BYTES, or 16 GiB")
    ] = "",
) -> None:
    """Removes the least recently used models until the rest fits."""
    from cuvil.cli.console import size_text
    from cuvil.engine.cache_store import size_bound

    removed = _store().prune(parse_bytes(size) if size else size_bound())
    typer.echo(f"removed {len(removed)} entries, {size_text(sum(e.bytes for e in removed))}")


def parse_bytes(text: str) -> int:
    """`500MB`, `2G` or plain bytes as a number. Raises OptionError."""
    from cuvil.errors import OptionError

    word = text.strip().upper().removesuffix("B")
    scale = {"K": 10**3, "M": 10**6, "G": 10**9}.get(word[-1:], 1)
    number = word[:-1] if scale > 1 else word
    try:
        return int(float(number) * scale)
    except ValueError:
        raise OptionError(f"'{text}' is no size: expected bytes, or such as 500MB") from None


def _store() -> Store:
    from cuvil.engine.cache_store import Store, default_root

    return Store(default_root())


def _ago(when: float) -> str:
    seconds = max(0.0, time.time() - when)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} seconds ago"
