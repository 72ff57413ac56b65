"""Cases of the suite in worker processes: a crash is one case that failed, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Timer

from tools.conformance.forms import forms
from tools.conformance.suite import Outcome, Progress

ROOT = Path(__file__).parents[2]


def run_cases(
    form: str, names: Sequence[str], jobs: int, progress: Progress = lambda outcome: None
) -> list[Outcome]:
    """The outcome of each case in a form, in the order of `names`, by `jobs` processes at once."""
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in names:
        waiting.put(name)
    found: dict[str, Outcome] = {}

    def work() -> None:
        worker = None
        while (name := _next(waiting)) is not None:
            worker = worker or _Worker(form)
            outcome = worker.run(name)
            if outcome is None:
                outcome = Outcome(name, "", f"the process died: {worker.end()}")
                worker = None
            found[name] = outcome
            progress(outcome)
        if worker is not None:
            worker.end()

    with ThreadPoolExecutor(jobs) as pool:
        for task in [pool.submit(work) for _ in range(jobs)]:
            task.result()
    return [found[name] for name in names]


def surroundings() -> dict[str, str]:
    """The environment of a child process that finds what this one imports."""
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": paths}


def _next(waiting: SimpleQueue[str]) -> str | None:
    try:
        return waiting.get_nowait()
    except Empty:
        return None


class _Worker:
    def __init__(self, form: str) -> None:
        self._limit = forms()[form].limit
        command = [sys.executable, "-m", "tools.conformance.worker", form]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=surroundings(),
        )  # fmt: skip

    def run(self, name: str) -> Outcome | None:
        """The outcome of a case; None when the process ended over it, or took too long."""
        assert self._process.stdin is not None and self._process.stdout is not None
        timer = Timer(self._limit, self._process.kill)
        timer.start()
        try:
            print(name, file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            return None
        finally:
            timer.cancel()
        return Outcome(**json.loads(line)) if line else None

    def end(self) -> str:
        """Waits for the process and says how it ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        status = self._process.wait()
        self._process.stdout.close()
        return f"signal {-status}" if status < 0 else f"status {status}"
