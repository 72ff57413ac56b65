"""Puts a run's chart and tables where readers find them: docs/images/speed.svg, the README."""

from __future__ import annotations

import re
from pathlib import Path

from tools.bench.chart import chart
from tools.bench.report import Report, markdown, markdown_dynamic, settings

ROOT = Path(__file__).parents[2]


def publish(report: Report, root: Path = ROOT) -> None:
    """Writes both for one thread; for more, the table between `speed-<threads>` alone. ValueError
    when the README lacks the marks that a table goes between."""
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    mark = "speed" if report.threads == 1 else f"speed-{report.threads}"
    text = between(text, mark, f"{report.machine}\n\n{markdown(report)}")
    if report.threads != 1:
        readme.write_text(text, encoding="utf-8")
        return
    text = between(text, "dynamic", markdown_dynamic(report))
    lines = [re.sub(r"(?m)^", "- ", line) for line in settings(report)]
    text = between(text, "settings", "\n".join(lines) + "\n")
    images = root / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    (images / "speed.svg").write_text(chart(report), encoding="utf-8")
    readme.write_text(text, encoding="utf-8")


def between(text: str, mark: str, content: str) -> str:
    """The text with `content` between `<!-- mark -->` and `<!-- /mark -->`."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    head, found, rest = text.partition(begin)
    tail = rest.partition(end)
    if not found or not tail[1]:
        raise ValueError(f"the README has no {begin.strip()} ... {end}")
    return f"{head}{begin}\n{content}\n{end}{tail[2]}"
