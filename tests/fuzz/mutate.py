"""Damaged models through the whole compiler: an error or an answer, never a crash, hang or glut.

`python -m tests.fuzz.mutate --count 2000` runs every case in a worker process with a limit of
time and of memory, and prints what ended a worker, took too long, or raised anything that is not
a `cuvil.Error`. `--only NUMBER` repeats one case in this process.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from cuvil.engine.engine import Engine
from cuvil.engine.front_door import compile_engine
from cuvil.errors import Error
from cuvil.options import Options
from tests.fuzz.mutators import mutate
from tests.fuzz.seeds import SEEDS

ADDRESS_LIMIT = 10 << 30  # bytes of address space of a worker and of its own workers
RSS_LIMIT = 2 << 30  # bytes in memory
RUN_LIMIT = 1 << 28  # bytes of inputs and outputs; a model that wants more is only compiled
TIME_LIMIT = 180.0  # seconds per case


def case(number: int, folder: Path) -> tuple[str, bytes]:
    """The name of a seed model and its damaged bytes; the same for the same number."""
    name = list(SEEDS)[number % len(SEEDS)]
    place = folder / name
    place.mkdir(exist_ok=True)
    return name, mutate(SEEDS[name](place), random.Random(number))


def attempt(number: int, folder: Path) -> str:
    """Compiles and runs one case: "answer", the name of an error, or a fault with its traceback."""
    name, data = case(number, folder)
    try:
        engine = compile_engine(data, Options(opt_level=1), threads=1, folder=str(folder / name))
        if _needs(engine) > RUN_LIMIT:
            return "large"
        names = [i.name for i in engine.get_inputs()]
        feeds = dict(zip(names, engine.zeros(), strict=True))
        engine.run(None, feeds, time_limit=TIME_LIMIT / 3)
    except Error as error:
        long = " long message" if len(str(error)) > 4000 else ""
        return type(error).__name__ + long
    except MemoryError:
        return "MemoryError"
    except BaseException:
        return "fault " + repr(traceback.format_exc(limit=-4))
    return "answer"


def _needs(engine: Engine) -> int:
    """Bytes that a run with the smallest inputs takes, as far as they are known before it."""
    tensors = [*engine.get_inputs(), *engine.get_outputs()]
    sizes = [8 * math.prod(d if isinstance(d, int) else 1 for d in t.dims) for t in tensors]
    return engine.model.arena_bytes + sum(sizes)


def work() -> None:
    """A worker: numbers in, one line each out."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_LIMIT, ADDRESS_LIMIT))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            print(attempt(int(line), Path(folder)), flush=True)


@dataclass
class Worker:
    """A worker process, started when needed."""

    process: subprocess.Popen[str] | None = None
    log: list[str] = field(default_factory=list)

    def run(self, number: int) -> str:
        """The outcome of one case, or how it ended the worker."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._ended()
        deadline = time.monotonic() + TIME_LIMIT
        while not select.select([process.stdout], [], [], 0.2)[0]:
            if time.monotonic() > deadline:
                return self._kill("fault: took too long")
            if _rss(process.pid) > RSS_LIMIT:
                return self._kill("fault: too much memory")
        line = process.stdout.readline().strip()
        return line or self._ended()

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, "-m", "tests.fuzz.mutate", "--worker"]
            paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
            )
        return self.process

    def _kill(self, why: str) -> str:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None
        return why

    def _ended(self) -> str:
        assert self.process is not None
        status = self.process.wait()
        self.process = None
        return f"fault: the process ended with status {status}"

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def _rss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def run_cases(numbers: range) -> tuple[Counter[str], dict[int, str]]:
    """How often each outcome came, and the faults by number."""
    worker, counts, faults = Worker(), Counter[str](), {}
    for number in numbers:
        outcome = worker.run(number)
        if outcome.startswith("fault") or "long message" in outcome:
            faults[number] = outcome
            print(f"-- case {number}: {outcome}".replace("\\n", "\n"), flush=True)
        counts[outcome.split()[0].rstrip(":")] += 1
    worker.close()
    return counts, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    if args.worker:
        work()
        return 0
    if args.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(attempt(args.only, Path(folder)).replace("\\n", "\n"))
        return 0
    started = time.monotonic()
    counts, faults = run_cases(range(args.start, args.start + args.count))
    said = ", ".join(f"{n} {what}" for what, n in counts.most_common())
    print(f"{args.count} cases in {time.monotonic() - started:.0f} s: {said}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
