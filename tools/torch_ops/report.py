"""Results of operators: a file that grows, and counts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "append", "read", "summary"]

RESULTS = ("native", "fallback", "wrong", "left out")


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Label -> result of what an earlier run has done."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["case"]: row for row in rows}


def append(path: Path, row: dict[str, Any]) -> None:
    """Keeps one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def by_operator(rows: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Operator -> the worst result of its element types; left out where nothing is captured."""
    order = ("wrong", "fallback", "native", "left out")
    found: dict[str, list[str]] = {}
    for label, row in rows.items():
        found.setdefault(label.rsplit(" ", 1)[0], []).append(row["result"])
    return {name: min(results, key=order.index) for name, results in found.items()}


def summary(rows: dict[str, dict[str, Any]]) -> str:
    """Counts by operator, and what is not native with its reason."""
    results = by_operator(rows)
    counts = Counter(results.values())
    captured = sum(counts[r] for r in ("native", "fallback", "wrong"))
    lines = [
        f"{label}: {row['result']}: {row['why']}"
        for label, row in sorted(rows.items())
        if row["result"] in ("wrong", "fallback")
    ]
    left = sorted(name for name, result in results.items() if result == "left out")
    lines.append(f"left out, as torch.compile itself does not capture them: {', '.join(left)}")
    lines.append("  ".join(f"{r}: {counts[r]}" for r in RESULTS))
    if captured:
        lines.append(f"native: {100 * counts['native'] / captured:.1f}% of {captured} captured")
    return "\n".join(lines)
