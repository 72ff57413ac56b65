"""ONNX's own test suite, case by case, over anything that has the interface of its backends."""

from __future__ import annotations

import re
import unittest
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import onnx
from onnx.backend.base import Backend
from onnx.backend.test import BackendTest

Progress = Callable[["Outcome"], None]


class ApartError(unittest.SkipTest):
    """The case has nothing that a form could change: it is neither passed nor failed."""


@dataclass(frozen=True)
class Outcome:
    """One case: its name without the device, its group, and why it failed ("": it passed).

    apart: the case does not belong to the form; `reason` says why. note: what else is to be told
    of a case that passed.
    """

    name: str
    group: str
    reason: str
    apart: bool = False
    note: str = ""

    @property
    def passed(self) -> bool:
        return not self.reason


class Suite:
    """The cases of the suite that run on the CPU, for one backend.

    A backend may have `rounds()`, an iterator that makes it ready to run a case once more in
    another way, and gives that way's name: the case has to pass in all of them.
    """

    def __init__(self, backend: type[Backend]) -> None:
        self._rounds: Callable[[], Iterable[str]] = getattr(backend, "rounds", lambda: ("",))
        self._models: list[onnx.ModelProto] = []
        self._reps: list[Any] = []
        self._cases = dict(_cases(BackendTest(self._watched(backend), __name__)))

    def names(self, pattern: str = "") -> list[str]:
        """The names of all cases that match, by category and name."""
        return [name for name in self._cases if re.search(pattern, name)]

    def run(self, name: str) -> Outcome:
        """Runs one case, in the backend's rounds until it fails."""
        for way in self._rounds():
            outcome = self._run(name)
            if not outcome.passed:
                return replace(outcome, reason=f"{way}: {outcome.reason}") if way else outcome
        return outcome

    def _run(self, name: str) -> Outcome:
        self._models.clear()
        self._reps.clear()
        category, case = self._cases[name]
        reason, apart = _reason(case)
        group = _group(category, name, self._models)
        note = "" if reason else getattr(self._reps[-1] if self._reps else None, "note", "")
        return Outcome(name, group, reason, apart, note)

    def _watched(self, backend: type[Backend]) -> type[Backend]:
        """The backend, with the models that it is given and what it makes of them kept."""
        suite = self

        class Watched(backend):  # type: ignore[misc, valid-type]
            @classmethod
            def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> Any:
                suite._models.append(model)
                suite._reps.append(backend.prepare(model, device, **options))
                return suite._reps[-1]

        return Watched


def run_suite(
    backend: type[Backend],
    pattern: str = "",
    progress: Progress | None = None,
    leave: Collection[str] = (),
) -> list[Outcome]:
    """All cases on the CPU whose name matches `pattern`, but those to `leave` out."""
    suite = Suite(backend)
    outcomes = []
    for name in suite.names(pattern):
        if name not in leave:
            outcomes.append(suite.run(name))
            if progress is not None:
                progress(outcomes[-1])
    return outcomes


def _cases(suite: BackendTest) -> Iterator[tuple[str, tuple[str, unittest.TestCase]]]:
    for category, case in suite.test_cases.items():
        for method in sorted(vars(case)):
            name = method.removesuffix("_cpu")
            if name != method:
                yield name, (category, case(method))


def _group(category: str, name: str, models: list[onnx.ModelProto]) -> str:
    """Where a case counts in tables: nodes by their operator's domain, others by category."""
    kind = category.removeprefix("OnnxBackend").removesuffix("Test").removesuffix("Model")
    if kind != "Node":
        kinds = {"Real": "networks", "Simple": "small models"}
        return kinds.get(kind, "models from PyTorch")
    if "_expanded" in name:
        return "function bodies"
    domains = {node.domain for model in models[-1:] for node in model.graph.node} - {"", "ai.onnx"}
    return f"nodes of {min(domains, default='ai.onnx')}"


def _reason(case: unittest.TestCase) -> tuple[str, bool]:
    result = unittest.TestResult()
    case.run(result)
    if result.skipped:
        text = result.skipped[0][1]
        return f"skipped: {text}", text.startswith("apart: ")
    failed = [*result.errors, *result.failures]
    return (last_error(failed[0][1]) if failed else ""), False


def last_error(traceback: str) -> str:
    """The error's own message, on one line, from a traceback's text."""
    lines = traceback.strip().splitlines()
    named = re.compile(r"[\w.]+(Error|Exception|Failure)\b")
    starts = [k for k, line in enumerate(lines) if named.match(line)]
    message = " ".join(line.strip() for line in lines[starts[-1] if starts else -1 :])
    return re.sub(r"^[\w.]*\.(\w+): (<ModelProto>: )?", r"", message)[:200]
