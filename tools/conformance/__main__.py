"""`python -m tools.conformance [PATTERN]`: the score in ONNX's own test suite.

Runs the cases of `onnx.backend.test` on the CPU in one form (`--form`), or in all of them and in
ONNX Runtime (`--all`), and compares with the lists of cases that are known not to pass, each with
its reason. Exit status 1 when a case that is not listed fails, or a listed one passes: the lists
only shrink.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cuvil.onnx_backend import CuvilBackend
from tools.conformance.crew import run_cases
from tools.conformance.forms import Form, forms
from tools.conformance.forms.emulated import MACHINE
from tools.conformance.lists import differences, known, update
from tools.conformance.suite import Outcome, Suite
from tools.conformance.table import score, table, write


def main(argv: list[str] | None = None) -> int:
    """See the module's text."""
    found = forms()
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="only cases whose name matches")
    parser.add_argument("--form", choices=list(found), action="append", default=[])
    parser.add_argument("--all", action="store_true", help="all forms, and ONNX Runtime")
    parser.add_argument("--machine", help="form emulated, on TRIPLE[:CPU[:BUILD]]")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md anew")
    parser.add_argument("--update", action="store_true", help="write the forms' lists anew")
    parser.add_argument("--log", type=Path, help="outcomes go on here; what is there is not run")
    options = parser.parse_args(argv)
    if options.machine:
        os.environ[MACHINE] = options.machine
        options.form.append("emulated")
    every = [name for name, form in found.items() if form.rank >= -1]
    chosen = every if options.all else options.form or ["static"]
    warnings.filterwarnings("ignore")
    names = Suite(CuvilBackend).names(options.pattern)
    scores = {name: _scored(name, names, options.jobs, options.log) for name in chosen}
    print(file=sys.stderr)
    for name, outcomes in scores.items():
        _tell(found[name], outcomes)
    text = table({found[name].title: outcomes for name, outcomes in scores.items()})
    told = [found[name].tell(outcomes) for name, outcomes in scores.items()]
    text = "\n\n".join([text, *filter(None, told)])
    print(text)
    if options.write:
        write(text)
    ours = {name: outcomes for name, outcomes in scores.items() if found[name].native}
    for name, outcomes in ours.items():
        if options.update and found[name].rank >= 0:
            update(name, outcomes)
    wrong = [f"{n}: {d}" for n, o in ours.items() for d in differences(o, known(n))]
    print("\n".join([*wrong, _cpu_time()]), file=sys.stderr)
    return 1 if wrong else 0


def _scored(form: str, names: Sequence[str], jobs: int, log: Path | None) -> list[Outcome]:
    """The outcomes of a form; with a log, only of cases that are not in it, which go there."""
    rows = log.read_text().splitlines() if log and log.exists() else []
    kept = [Outcome(**row["outcome"]) for row in map(json.loads, rows) if row["form"] == form]
    found = {o.name: o for o in kept}
    file = log.open("a") if log else None

    def progress(outcome: Outcome) -> None:
        _dot(outcome)
        if file is not None:
            file.write(json.dumps({"form": form, "outcome": asdict(outcome)}) + "\n")
            file.flush()

    fresh = run_cases(form, [n for n in names if n not in found], jobs, progress)
    if file is not None:
        file.close()
    found |= {o.name: o for o in fresh}
    return [found[name] for name in names]


def _tell(form: Form, outcomes: Sequence[Outcome]) -> None:
    """Names what does not pass, where that is ours to mend, and the score."""
    if form.name != "onnxruntime":
        for outcome in outcomes:
            if not outcome.passed and not outcome.apart:
                print(f"{outcome.name}: {outcome.reason}")
    print(f"{form.name}: {score(outcomes)}")


def _cpu_time() -> str:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return f"{spent.ru_utime + spent.ru_stime:.0f} s of cpu time"


def _dot(outcome: Outcome) -> None:
    sign = " " if outcome.apart else "." if outcome.passed else "-"
    print(sign, end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
