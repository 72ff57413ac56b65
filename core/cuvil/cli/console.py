"""What commands print: plain text or JSON on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

SLOW_S = 1.0
"""Stages that take longer are told where no terminal shows them as they run."""


class Stages:
    """Takes the names of stages as they begin; `seconds` says how long each took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage = ""
        self._since = time.perf_counter()

    def __call__(self, stage: str) -> None:
        self._end()
        self._stage = stage

    def _end(self) -> None:
        now = time.perf_counter()
        if self._stage:
            took = now - self._since
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + took
            self.ended(self._stage, took)
        self._since = now

    def ended(self, stage: str, seconds: float) -> None:
        """Called when a stage is over."""

    def close(self) -> None:
        """The last stage is over."""
        self._end()
        self._stage = ""

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


class _Told(Stages):
    """Says on stderr, afterwards, which stages took long."""

    def ended(self, stage: str, seconds: float) -> None:
        if seconds > SLOW_S:
            print(f"cuvil: {stage} took {seconds:.1f} s", file=sys.stderr)


class _Shown(Stages):
    """Shows the stage and its time on the terminal while it runs."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        super().__init__()
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        self._display = Progress(*columns, console=Console(stderr=True), transient=True)
        self._display.start()
        self._task: Any = None

    def __call__(self, stage: str) -> None:
        super().__call__(stage)
        if self._task is not None:
            self._display.remove_task(self._task)
        self._task = self._display.add_task(stage, total=None)

    def close(self) -> None:
        super().close()
        self._display.stop()


@contextmanager
def progress() -> Iterator[Stages]:
    """Stages that are shown on stderr: live on a terminal, else those that took long."""
    stages: Stages = _Shown() if sys.stderr.isatty() else _Told()
    try:
        yield stages
    finally:
        stages.close()


def print_json(value: Any) -> None:
    """Prints plain data as JSON; numpy's numbers are numbers."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints columns as wide as their longest cell; numbers stand to the right."""
    cells = [[_cell(c) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [
        bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        for i in range(len(header))
    ]
    for line in ([*header], *cells):
        padded = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        typer.echo("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def note(text: str) -> None:
    """Says something on stderr."""
    typer.echo(f"cuvil: {text}", err=True)


def size_text(count: int) -> str:
    """Bytes as people read them."""
    amount, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


def shape_text(dims: Sequence[object]) -> str:
    """`[N, 3, ?]`: unknown dims as a question mark."""
    return "[" + ", ".join("?" if d is None else str(d) for d in dims) + "]"
