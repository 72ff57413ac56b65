"""Runs ONNX's backend tests in this process and says of each whether it passed, or why not."""

from __future__ import annotations

import re
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onnx.backend.base import Backend
from onnx.backend.test import BackendTest

__all__ = ["Outcome", "run_suite"]


@dataclass(frozen=True)
class Outcome:
    """One case: its name without the device, its category, and the reason it failed ("": not)."""

    name: str
    category: str
    reason: str

    @property
    def passed(self) -> bool:
        return not self.reason


def run_suite(
    backend: type[Backend], pattern: str = "", progress: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """All cases of the suite on the CPU whose name matches `pattern`, in the suite's order."""
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
    starts = [
        k for k, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception|Failure)\b", line)
    ]
    message = " ".join(line.strip() for line in lines[starts[-1] if starts else -1 :])
    return message[:300]
