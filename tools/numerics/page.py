"""Records and samples as text: a line for the terminal, the tables of docs/numerics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cuvil.ops.scalars import Scalar, scalar
from tools.numerics.exact import far
from tools.numerics.samples import Sample
from tools.numerics.store import Record
from tools.numerics.sweep import RANGES, Outcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "numerics.md"

__all__ = ["faults", "line", "tables", "write"]


def line(record: Record) -> str:
    """One line about a function."""
    row = scalar(record.name)
    parts = [f"{o.build} {_error(row, o):.3f} at {_at(row, o):.9g}" for o in record.outcomes]
    every = "all float32" if record.exhaustive else f"1 in {record.step}"
    return f"{row.name:<18}{_allowed(row):<12}{', '.join(parts)}; {every}"


def faults(records: Iterable[Record], samples: Iterable[Sample]) -> list[str]:
    """What breaks a bound, a range or the equality of bits."""
    found = []
    for record in records:
        row = scalar(record.name)
        for o in record.outcomes:
            where = f"{record.name}, f32, {o.build}"
            if o.ulps > max(row.ulp, 0.5):
                found.append(f"{where}: {o.ulps:.3f} ulps at {o.ulps_at!r}, allowed {row.ulp}")
            if o.faults:
                found.append(f"{where}: out of range or a wrong special value at {o.faults_at!r}")
            if o.tails:
                found.append(f"{where}: {o.tails} single elements differ from the vectors")
    return found + [f"off its bound: {s}" for s in samples if s.faults]


def write(records: Sequence[Record], samples: Sequence[Sample], path: Path = DOCUMENT) -> None:
    """Puts the tables between the document's marks."""
    text = path.read_text()
    for name, table in tables(records, samples).items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        head, rest = text.split(begin, 1)
        text = f"{head}{begin}\n\n{table}\n\n{end}{rest.split(end, 1)[1]}"
    path.write_text(text)


def tables(records: Sequence[Record], samples: Sequence[Sample]) -> dict[str, str]:
    """The document's tables by the name of their marks."""
    plain = [r for r in records if not scalar(r.name).slack]
    sums = [r for r in records if scalar(r.name).slack]
    powers = [s for s in samples if s.name == "pow"]
    doubles = [s for s in samples if s.dtype == "f64" and s.name != "pow"]
    return {
        "f32": _swept(plain, "allowed, ulp"),
        "f32 sums": _swept(sums, "allowed"),
        "f64": _sampled(doubles, _ulps),
        "pow": _sampled(powers, _ulps, lambda s: f"pow, {s.dtype}"),
        "f16": _sampled([s for s in samples if s.dtype == "f16"], _misrounded),
        "bf16": _sampled([s for s in samples if s.dtype == "bf16"], _misrounded),
    }


def _swept(records: Sequence[Record], bound: str) -> str:
    if not records:
        return "Not measured."
    builds = [o.build for o in records[0].outcomes]
    lines = _head(["function", bound, *builds, "worst at", "range", "same bits", "operands"])
    for record in records:
        row = scalar(record.name)
        worst = max(record.outcomes, key=lambda o, row=row: _error(row, o))  # type: ignore[misc]
        cells = [_function(row), _allowed(row)]
        cells += [f"{_error(row, o):.3f}" for o in record.outcomes]
        cells += [f"{_at(row, worst):.9g}" if _error(row, worst) else ""]
        cells += [_range(row, record.outcomes), _same(record.outcomes)]
        cells += ["all" if record.exhaustive else f"1 in {record.step}"]
        lines.append(_row(cells))
    return "\n".join(lines)


def _function(row: Scalar) -> str:
    plain, fused = far(row.name, fma=False), far(row.name, fma=True)
    return row.name if plain == fused else f"{row.name}, \\|x\\| ≤ {plain:g} ({fused:g})"


def _allowed(row: Scalar) -> str:
    if row.slack:
        return f"{row.slack:g} eps + {row.ulp:g} ulp"
    return "exact" if row.exact else f"{row.ulp:g}"


def _error(row: Scalar, o: Outcome) -> float:
    return o.scaled if row.slack else o.ulps


def _at(row: Scalar, o: Outcome) -> float:
    return o.scaled_at if row.slack else o.ulps_at


def _range(row: Scalar, outcomes: Sequence[Outcome]) -> str:
    if any(o.faults for o in outcomes):
        return "**broken**"
    low, high = RANGES.get(row.name, (float("-inf"), float("inf")))
    return "" if (low, high) == (float("-inf"), float("inf")) else f"{low:.9g} to {high:.9g}"


def _same(outcomes: Sequence[Outcome]) -> str:
    """Runs of builds whose results have the same bits."""
    groups: list[list[str]] = []
    for o in outcomes:
        if groups and not o.differs:
            groups[-1].append(o.build)
        else:
            groups.append([o.build])
    if len(groups) == 1:
        return "all"
    return "; ".join(" = ".join(g) for g in groups if len(g) > 1) or "none"


def _sampled(
    samples: Sequence[Sample],
    cell: Callable[[Sample], str],
    title: Callable[[Sample], str] = lambda s: s.name,
) -> str:
    if not samples:
        return "Not measured."
    builds = list(dict.fromkeys(s.build for s in samples))
    rows: dict[str, dict[str, Sample]] = {}
    for sample in samples:
        rows.setdefault(title(sample), {})[sample.build] = sample
    lines = _head(["function", "allowed, ulp", *builds, "operands"])
    for name, by_build in rows.items():
        first = next(iter(by_build.values()))
        allowed = _allowed(scalar(first.name)) if scalar(first.name).slack else f"{first.allowed:g}"
        cells = [cell(by_build[b]) for b in builds]
        lines.append(_row([name, allowed, *cells, f"{first.count:,}"]))
    return "\n".join(lines)


def _ulps(sample: Sample) -> str:
    return f"{sample.ulps:.3f}"


def _misrounded(sample: Sample) -> str:
    return str(sample.misrounded)


def _head(cells: Sequence[str]) -> list[str]:
    return [_row(cells), _row(["---", *["--:"] * (len(cells) - 1)])]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
