"""`python -m tools.conformance [PATTERN]`: the score in ONNX's own test suite.

Runs the cases of `onnx.backend.test` on the CPU and compares with the list of cases that are known
not to pass, each with its reason. Exit status 1 when a case that is not listed fails, or a listed
one passes: the list only shrinks.
"""

from __future__ import annotations

import argparse
import re
import sys
import unittest
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx.backend.base import Backend
from onnx.backend.test import BackendTest

from cuvil.ir.graph import Graph
from cuvil.onnx_backend import Compiled, CuvilBackend
from cuvil.ops import interpreter
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases

LIST = Path(__file__).parents[1] / "tests" / "conformance" / "unsupported.txt"


class ReferenceBackend(CuvilBackend):
    """The numpy interpreter: it checks the importer and says nothing of compiled code."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        return lambda feeds: interpreter.run(graph, feeds)


class PlanBackend(CuvilBackend):
    """The program and the kernels that compiled code is made from, verified and interpreted."""

    @staticmethod
    def compile_graph(graph: Graph) -> Compiled:
        run_phases(graph)
        plan = make_plan(graph)
        verify_plan(plan)
        return lambda feeds: run_plan(plan, feeds)


BACKENDS: dict[str, type[Backend]] = {
    "native": CuvilBackend,
    "plan": PlanBackend,
    "reference": ReferenceBackend,
}


@dataclass(frozen=True)
class Outcome:
    """One case: its name without the device, its category, and why it failed ("": it passed)."""

    name: str
    category: str
    reason: str

    @property
    def passed(self) -> bool:
        return not self.reason


def run_suite(
    backend: type[Backend], pattern: str = "", progress: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """All cases on the CPU whose name matches `pattern`, by category and name."""
    outcomes = []
    for category, name, case in _cases(BackendTest(backend, __name__), pattern):
        outcome = Outcome(name, category, _reason(case))
        outcomes.append(outcome)
        if progress is not None:
            progress(outcome)
    return outcomes


def _cases(suite: BackendTest, pattern: str) -> Iterator[tuple[str, str, unittest.TestCase]]:
    for category, case in suite.test_cases.items():
        for method in sorted(vars(case)):
            name = method.removesuffix("_cpu")
            if name != method and re.search(pattern, name):
                yield category.removeprefix("OnnxBackend").removesuffix("Test"), name, case(method)


def _reason(case: unittest.TestCase) -> str:
    result = unittest.TestResult()
    case.run(result)
    if result.skipped:
        return f"skipped: {result.skipped[0][1]}"
    failed = [*result.errors, *result.failures]
    return _last_error(failed[0][1]) if failed else ""


def _last_error(traceback: str) -> str:
    """The error's own message, on one line, from a traceback's text."""
    lines = traceback.strip().splitlines()
    named = re.compile(r"[\w.]+(Error|Exception|Failure)\b")
    starts = [k for k, line in enumerate(lines) if named.match(line)]
    message = " ".join(line.strip() for line in lines[starts[-1] if starts else -1 :])
    return re.sub(r"^[\w.]*\.(\w+): (<ModelProto>: )?", r"", message)[:200]


def listed(path: Path = LIST) -> dict[str, str]:
    """The cases that are known not to pass, with their reasons: lines `name: reason`."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def differences(outcomes: Sequence[Outcome], known: dict[str, str]) -> list[str]:
    """Cases that fail without being on the list, and those on it that pass."""
    found = []
    for outcome in outcomes:
        if not outcome.passed and outcome.name not in known:
            found.append(f"{outcome.name} fails: {outcome.reason}")
        elif outcome.passed and outcome.name in known:
            found.append(f"{outcome.name} passes: take it off the list")
    return found


def score(outcomes: Sequence[Outcome]) -> str:
    """`1234 of 2033 pass` with the numbers by category."""
    total = Counter(o.category for o in outcomes)
    passed = Counter(o.category for o in outcomes if o.passed)
    parts = ", ".join(f"{name} {passed[name]}/{count}" for name, count in sorted(total.items()))
    return f"{passed.total()} of {total.total()} pass ({parts})"


def main(argv: list[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="only cases whose name matches")
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="native")
    parser.add_argument("--update", action="store_true", help="write the list anew")
    options = parser.parse_args(argv)
    outcomes = run_suite(BACKENDS[options.backend], options.pattern, _dot)
    failed = {o.name: o.reason for o in outcomes if not o.passed}
    print(file=sys.stderr)
    for name, reason in failed.items():
        print(f"{name}: {reason}")
    print(score(outcomes))
    if options.update:
        LIST.write_text("".join(f"{n}: {r}\n" for n, r in sorted(failed.items())))
        return 0
    wrong = differences(outcomes, listed())
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


def _dot(outcome: Outcome) -> None:
    print("." if outcome.passed else "-", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
