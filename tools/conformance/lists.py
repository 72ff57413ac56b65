"""The cases that are known not to pass, with their reasons: lists that only shrink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.conformance.suite import Outcome

FOLDER = Path(__file__).parents[2] / "tests" / "conformance"
LIST = FOLDER / "unsupported.txt"


def listed(path: Path = LIST) -> dict[str, str]:
    """The cases of a list, with their reasons: lines `name: reason`. No file is an empty list."""
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def path_of(form: str) -> Path:
    """The list of a form's own: of cases that pass as the suite has them."""
    return LIST if form == "static" else FOLDER / f"{form}.txt"


def known(form: str) -> dict[str, str]:
    """What does not pass in a form: what does not pass at all, and what its own list adds."""
    return listed() | (listed(path_of(form)) if form != "static" else {})


def differences(outcomes: Sequence[Outcome], known: Mapping[str, str]) -> list[str]:
    """Cases that fail without being on the list, and those on it that pass."""
    found = []
    for outcome in outcomes:
        if outcome.apart:
            continue
        if not outcome.passed and outcome.name not in known:
            found.append(f"{outcome.name} fails: {outcome.reason}")
        elif outcome.passed and outcome.name in known:
            found.append(f"{outcome.name} passes: take it off the list")
    return found


def update(form: str, outcomes: Sequence[Outcome]) -> None:
    """Writes a form's list anew, the comments at its top and the old reasons kept."""
    path, old = path_of(form), known(form)
    head = [x for x in path.read_text().splitlines() if x.startswith("#")] if path.exists() else []
    leave = {} if form == "static" else listed()
    failed = {o.name: o.reason for o in outcomes if not (o.passed or o.apart or o.name in leave)}
    lines = [f"{name}: {old.get(name, reason)}" for name, reason in sorted(failed.items())]
    path.write_text("".join(f"{line}\n" for line in (*head, *lines)))
