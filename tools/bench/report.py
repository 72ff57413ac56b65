"""What a run of the fixed list says: lines for a terminal, a table for the README, the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.bench.suite import OWN, Row

HEADINGS = (
    f"{'model':14} {'engine':15} {'median ms':>10} {'cuvil is':>9} {'of peak':>7} "
    f"{'first ms':>8} {'error':>6} {'peak MB':>8}"
)


@dataclass
class Report:
    """All rows of a run. machine: its cpu and rates, in words; dynamic: rows with an engine "fixed"
    in place of peers.
    """

    machine: str
    threads: int
    rows: list[Row] = field(default_factory=list)
    dynamic: list[Row] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "threads": self.threads,
            "rows": [row.to_json() for row in self.rows],
            "dynamic": [row.to_json() for row in self.dynamic],
            "geometric_mean": {name: mean(self.rows, name) for name in self.peers()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        rows, dynamic = ([Row.from_json(r) for r in data[key]] for key in ("rows", "dynamic"))
        return cls(data["machine"], data["threads"], rows, dynamic)

    @property
    def peak_gflops(self) -> float:
        """The most that was measured: processes that share the machine see less of it."""
        return max((row.peak_gflops for row in self.rows), default=0.0)

    def peers(self) -> list[str]:
        """Engines other than cuvil that ran on at least one model, most models first."""
        names = [name for row in self.rows for name in row.engines if name != OWN]
        return sorted(dict.fromkeys(names), key=lambda name: -names.count(name))


def mean(rows: Sequence[Row], peer: str) -> float:
    """Geometric mean of how many times as fast as the peer cuvil is, where both ran; nan without
    any.
    """
    found = ratios(rows, peer)
    return math.exp(sum(map(math.log, found)) / len(found)) if found else math.nan


def ratios(rows: Sequence[Row], peer: str) -> list[float]:
    """How many times as fast as the peer cuvil is, for each model that both ran."""
    values = [row.engines[peer].ratio for row in rows if peer in row.engines]
    return [value for value in values if value is not None]


def row_lines(row: Row, peak_gflops: float) -> Iterator[str]:
    """A model's lines under `HEADINGS`."""
    if row.problem:
        yield f"{row.name:14} {row.problem}"
        return
    for name, timed in row.engines.items():
        ratio = f"{timed.ratio:8.2f}x" if timed.ratio else " " * 9
        share = f"{row.share(peak_gflops):7.0%}" if name == OWN else " " * 7
        error = "" if timed.error is None else f"{timed.error:.2f}"
        label = row.name if name == OWN else ""
        memory = f"{timed.peak_bytes / 1e6:8.1f}" if timed.peak_bytes else ""
        yield (
            f"{label:14} {name:15} {timed.median_ms:10.3f} {ratio} {share} "
            f"{timed.ready_ms:8.1f} {error:>6} {memory}"
        ).rstrip()
    for name, reason in row.skipped.items():
        yield f"{'':14} {name:15} {short(reason)}"
    yield (
        f"{'':14} {row.gflop:.3g} GFLOP, compiled in {row.compile_s:.1f} s, "
        f"library {size(row.file_bytes)}, of that weights {size(row.weights_bytes)}"
    )


def dynamic_line(row: Row) -> str:
    """What free dims cost a model."""
    if row.problem:
        return f"{row.name:18} {row.problem}"
    free, fixed = row.engines[OWN], row.engines["fixed"]
    speed = fixed.ratio or math.nan
    return (
        f"{row.name:18} free {free.median_ms:9.3f} ms, fixed {fixed.median_ms:9.3f} ms: "
        f"{speed:.2f} of the fixed speed"
    )


def summary(report: Report) -> Iterator[str]:
    """Geometric means, the slowest models, and the settings of all engines."""
    for peer in report.peers():
        found = ratios(report.rows, peer)
        yield (
            f"against {peer}: geometric mean {mean(report.rows, peer):.2f}x over {len(found)} "
            f"models, least {min(found):.2f}x"
        )
    yield "settings:"
    yield from (f"  {line}" for line in settings(report))


def settings(report: Report) -> list[str]:
    """How each engine was set up, once."""
    lines = (timed.settings for row in report.rows for timed in row.engines.values())
    return list(dict.fromkeys(lines))


def markdown(report: Report) -> str:
    """The table of the README."""
    peers = [name for name in report.peers() if name in PEERS]
    heads = ["model", "Cuvil, ms", *(f"{PEERS.get(p, p)}, ms" for p in peers)]
    heads += ["of peak", "first result, ms", "memory", "library"]
    lines = [" | ".join(heads), " | ".join(["---", *["--:"] * (len(heads) - 1)])]
    for row in report.rows:
        if row.problem:
            continue
        own = row.engines[OWN]
        cells = [row.name, digits(own.median_ms), *(_cell(row, peer) for peer in peers)]
        cells += [
            f"{row.share(report.peak_gflops):.0%}",
            digits(own.ready_ms),
            "-" if not own.peak_bytes else size(own.peak_bytes),
            size(row.file_bytes),
        ]
        lines.append(" | ".join(cells))
    means = [f"**{mean(report.rows, peer):.2f}x**" for peer in peers]
    lines.append(" | ".join(["**geometric mean**", "", *means, "", "", "", ""]))
    return "".join(f"| {line} |\n" for line in lines)


def markdown_dynamic(report: Report) -> str:
    """The README's table of what free dims cost."""
    lines = ["model | free, ms | fixed, ms | of the fixed speed", "--- | --: | --: | --:"]
    for row in report.dynamic:
        if not row.problem:
            free, fixed = row.engines[OWN], row.engines["fixed"]
            cells = [row.name, digits(free.median_ms), digits(fixed.median_ms)]
            lines.append(" | ".join([*cells, f"{fixed.ratio:.2f}"]))
    return "".join(f"| {line} |\n" for line in lines)


PEERS = {
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torch": "torch",
    "torch-inductor": "inductor",
}


def _cell(row: Row, peer: str) -> str:
    if peer not in row.engines:
        return "-"
    timed = row.engines[peer]
    return f"{digits(timed.median_ms)} ({timed.ratio:.2f}x)"


def digits(value: float) -> str:
    """Three digits: 0.0146, 3.02, 92.6, 123."""
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{places}f}"


def size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e6:.1f} MB"


def short(reason: str, most: int = 100) -> str:
    """The first line of a reason, cut."""
    line = reason.strip().splitlines()[0]
    return line if len(line) <= most else line[: most - 3] + "..."
