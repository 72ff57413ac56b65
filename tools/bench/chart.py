"""The speed chart: for each model, how fast each engine is when ONNX Runtime is 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from tools.bench.report import PEERS, Report, mean
from tools.bench.suite import OWN, Row

BASE = "onnxruntime"
LEFT, WIDTH, RIGHT = 120, 560, 60
BAR, GAP, TOP, BOTTOM = 9, 12, 64, 40
LABELS = {OWN: "Cuvil", **PEERS}

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.small { font-size: 10px; fill: #59636e; }
.title { font-size: 15px; font-weight: 600; }
.grid { stroke: #d1d9e0; } .one { stroke: #59636e; }
.cuvil { fill: #d9480f; } .openvino { fill: #4c8eda; } .torch { fill: #b4a7d6; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; }
  .grid { stroke: #3d444d; } .one { stroke: #9198a1; }
}
"""


def chart(report: Report) -> str:
    """An SVG document. Models that ONNX Runtime did not run are left out."""
    rows = [row for row in report.rows if BASE in row.engines]
    engines = [OWN, *(p for p in report.peers() if p in LABELS and p != BASE)]
    speeds = [[_speed(row, engine) for engine in engines] for row in rows]
    most = math.ceil(max((s for line in speeds for s in line if s), default=1) * 2) / 2
    pitch = len(engines) * BAR + GAP
    bottom = TOP + pitch * len(rows)
    parts = [
        *_grid(most, bottom),
        *_bars(rows, engines, speeds, most, pitch),
        *_legend(report, engines, bottom),
    ]
    width, height = LEFT + WIDTH + RIGHT, bottom + BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{_title(report)}">\n'
        f"<style>\n{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _speed(row: Row, engine: str) -> float | None:
    """Speed of an engine in multiples of the base's; None where it did not run."""
    if engine not in row.engines:
        return None
    return (row.engines[BASE].ratio or 1.0) / (row.engines[engine].ratio or 1.0)


def _title(report: Report) -> str:
    count = f"{report.threads} thread{'s' if report.threads > 1 else ''}"
    return f"Speed on {count}, fp32: ONNX Runtime is 1, longer is faster"


def _x(speed: float, most: float) -> float:
    return LEFT + WIDTH * speed / most


def _grid(most: float, bottom: int) -> Iterator[str]:
    step = 0.5 if most <= 4 else 1
    for number in range(math.floor(most / step) + 1):
        value = number * step
        x = _x(value, most)
        kind = "one" if value == 1 else "grid"
        yield f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>'
        yield _text(x, bottom + 14, f"{value:g}", "small", "middle")


def _bars(
    rows: Sequence[Row],
    engines: Sequence[str],
    speeds: Sequence[Sequence[float | None]],
    most: float,
    pitch: int,
) -> Iterator[str]:
    for place, (row, line) in enumerate(zip(rows, speeds, strict=True)):
        top = TOP + place * pitch
        yield _text(LEFT - 8, top + len(engines) * BAR / 2 + 4, row.name, "", "end")
        for number, (engine, speed) in enumerate(zip(engines, line, strict=True)):
            y = top + number * BAR
            if speed is None and engine not in row.skipped:
                continue
            if speed is None:
                yield _text(LEFT + 4, y + BAR - 1, f"{LABELS[engine]}: does not run", "small")
                continue
            width = WIDTH * speed / most
            yield (
                f'<rect class="{engine}" x="{LEFT}" y="{y}" width="{width:.1f}" '
                f'height="{BAR - 1}"><title>{LABELS[engine]} {speed:.2f}</title></rect>'
            )
            if engine == OWN:
                yield _text(_x(speed, most) + 4, y + BAR - 1, f"{speed:.2f}", "small")


def _legend(report: Report, engines: Sequence[str], bottom: int) -> Iterator[str]:
    yield _text(LEFT, 18, _title(report), "title")
    x = LEFT
    for engine in engines:
        label = LABELS[engine]
        if engine == OWN:
            label = f"{label} (geometric mean {mean(report.rows, BASE):.2f})"
        yield f'<rect class="{engine}" x="{x}" y="30" width="10" height="10"/>'
        yield _text(x + 15, 39, label)
        x += 30 + 7 * len(label)
    yield _text(LEFT, bottom + 30, report.machine, "small")


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
