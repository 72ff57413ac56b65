"""Scores as text: a line for the terminal, a table for docs/conformance.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.conformance.suite import Outcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
BEGIN, END = "<!-- table -->", "<!-- /table -->"

Scores = Mapping[str, Sequence[Outcome]]


def score(outcomes: Iterable[Outcome]) -> str:
    """`1234 of 2033 pass`, how many cases stand apart, and the numbers by group."""
    counted = [o for o in outcomes if not o.apart]
    apart = len(list(outcomes)) - len(counted)
    total = Counter(o.group for o in counted)
    passed = Counter(o.group for o in counted if o.passed)
    parts = ", ".join(f"{name} {passed[name]}/{count}" for name, count in sorted(total.items()))
    aside = f", {apart} apart" if apart else ""
    return f"{passed.total()} of {total.total()} pass{aside} ({parts})"


def table(columns: Mapping[str, Sequence[Outcome]]) -> str:
    """A row for each group, a column for each form (title -> outcomes), in Markdown."""
    groups = {o.name: o.group for outcomes in columns.values() for o in outcomes if o.group}
    rows = Counter(groups.values())
    head = ["cases", "number", *columns]
    lines = [_row(head), _row(["---", *["--:"] * (len(head) - 1)])]
    for group, count in sorted(rows.items(), key=lambda row: (-row[1], row[0])):
        cells = [_passed(o for o in c if groups.get(o.name) == group) for c in columns.values()]
        lines.append(_row([group, str(count), *cells]))
    bold = [f"**{text}**" for text in ("all", str(rows.total()), *map(_passed, columns.values()))]
    return "\n".join([*lines, _row(bold)])


def _passed(outcomes: Iterable[Outcome]) -> str:
    return str(sum(o.passed for o in outcomes))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write(text: str, path: Path = DOCUMENT) -> None:
    """Puts a table between the marks of a document."""
    head, rest = path.read_text().split(BEGIN, 1)
    _, tail = rest.split(END, 1)
    path.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}")
