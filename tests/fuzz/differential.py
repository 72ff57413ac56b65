"""Random graphs, many to a module, computed in every way and held against numpy.

    python -m tests.fuzz.differential --count 20000 --jobs 2
    python -m tests.fuzz.differential --only 4711          # one graph by itself, with its text

A graph follows from its number, and its module from the numbers of both. Prints every difference,
then how often each primitive, element type and rule took part; a rule that took no part in
`FULL` graphs or more is a fault. `--log FILE` keeps what is done: a run that was cut short goes on
with the same FILE, and ranges run apart are counted together.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cuvil.ir.record import PRIMITIVES
from cuvil.ir.text import print_ir
from cuvil.rewrite.registry import load_rules
from tests.fuzz.batch import Case, build
from tests.fuzz.check import Fault, Result, check
from tests.fuzz.modes import MODES
from tests.fuzz.workers import Worker

FULL = 10_000  # graphs from which on every rule and primitive must have taken part
PER_MODULE = 40
TIME_LIMIT = 1800.0  # seconds for a module, on a machine that may be busy
APART = "string"  # primitives whose names begin so are no part of random programs


def modules(start: int, count: int) -> Iterator[range]:
    """The numbers of each module that has some of a range."""
    while count > 0:
        end = min(start + count, (start // PER_MODULE + 1) * PER_MODULE)
        yield range(start, end)
        start, count = end, count - (end - start)


def check_range(numbers: range, modes: Sequence[str] = MODES) -> Result:
    """The module of these graphs."""
    return check([Case(n) for n in numbers], modes, numbers[0] // PER_MODULE)


def pack(result: Result) -> str:
    """A result as a line of text."""
    faults = [[list(f.numbers), f.way, f.what] for f in result.faults]
    return json.dumps([faults, [dict(c) for c in result.counters()], result.graphs])


def unpack(line: str) -> Result:
    """What `pack` wrote."""
    faults, counters, graphs = json.loads(line)
    found = [Fault(tuple(numbers), way, what) for numbers, way, what in faults]
    names, kinds, rules, forms = (Counter(c) for c in counters)
    return Result(found, names, kinds, rules, forms, graphs)


def work() -> None:
    """A worker: lines with a range and modes in, results out."""
    for line in sys.stdin:
        start, stop, modes = json.loads(line)
        print(pack(check_range(range(start, stop), modes)), flush=True)


def run_range(worker: Worker, numbers: range, modes: Sequence[str]) -> Result:
    """A module in a worker; where that ends the worker, its graphs one by one."""
    answer = worker.ask(json.dumps([numbers.start, numbers.stop, list(modes)]), TIME_LIMIT)
    if not answer.startswith("fault"):
        return unpack(answer)
    if len(numbers) == 1:
        return Result([Fault(tuple(numbers), ",".join(modes), answer)], graphs=1)
    total = Result()
    for number in numbers:
        total.add(run_range(worker, range(number, number + 1), modes))
    if not total.faults:
        total.faults.append(Fault(tuple(numbers), ",".join(modes), answer))
    return total


class Log:
    """A file of finished modules, or nothing."""

    def __init__(self, path: str) -> None:
        self.path = Path(path) if path else None
        self.known: dict[str, str] = {}
        if self.path is not None and self.path.exists():
            rows = (line.split("\t", 1) for line in self.path.read_text().splitlines())
            self.known = {row[0]: row[1] for row in rows if len(row) == 2}

    def add(self, numbers: range, result: Result) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{numbers.start}-{numbers.stop}\t{pack(result)}\n")

    def total(self) -> Result:
        """All that is in the file."""
        total = Result()
        for line in self.known.values():
            total.add(unpack(line))
        return total


def run_all(start: int, count: int, jobs: int, modes: Sequence[str], log: Log) -> Result:
    """Every module of a range that is not in the log; the sum, what the log knew included."""
    total = log.total()
    todo = [m for m in modules(start, count) if f"{m.start}-{m.stop}" not in log.known]
    workers = [Worker("tests.fuzz.differential") for _ in range(jobs)]

    def one(job: int) -> Iterator[tuple[range, Result]]:
        for numbers in todo[job::jobs]:
            yield numbers, run_range(workers[job], numbers, modes)

    def chain(job: int) -> None:
        for numbers, result in one(job):
            report(result)
            log.add(numbers, result)
            total.add(result)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(chain, range(jobs)))
    for worker in workers:
        worker.close()
    return total


def report(result: Result) -> None:
    for fault in result.faults:
        which = ", ".join(map(str, fault.numbers))
        print(f"-- graph {which}, {fault.way}: {fault.what}", flush=True)


def unused(total: Result) -> list[str]:
    """Rules and primitives that took no part."""
    names = [f"rule {r.name}" for r in load_rules() if not total.rules[r.name]]
    expected = sorted(n for n in PRIMITIVES if not n.startswith(APART))
    return names + [f"primitive {n}" for n in expected if not total.primitives[n]]


def summary(total: Result) -> str:
    """The counts, a line for each table."""
    titles = ("primitives", "element types", "rules applied", "modules by way")
    lines = []
    for title, counter in zip(titles, total.counters(), strict=True):
        rows = ", ".join(f"{name} {n}" for name, n in counter.most_common())
        lines.append(f"{title} ({len(counter)}): {rows}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first number")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--only", type=int, help="one graph by itself, in this process")
    parser.add_argument("--log", default="", help="a file of what is done")
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    if args.worker:
        work()
        return 0
    if args.only is not None:
        return only(args.only, args.modes.split(","))
    started = time.perf_counter()
    total = run_all(args.seed, args.count, args.jobs, args.modes.split(","), Log(args.log))
    print(summary(total))
    missing = unused(total)
    if missing:
        print(f"took no part: {', '.join(missing)}")
    bad = {n for f in total.faults for n in f.numbers}
    seconds = time.perf_counter() - started
    spent = os.times().children_user + os.times().children_system
    print(f"{total.graphs} graphs, {len(bad)} with faults, {seconds:.0f} s, {spent:.0f} s of cpus")
    return 1 if bad or (missing and total.graphs >= FULL) else 0


def only(number: int, modes: Sequence[str]) -> int:
    """One graph with all modules' options in turn where it is clean with its own."""
    print(print_ir(build([Case(number)]).graph.module))
    result = check([Case(number)], modes, number // PER_MODULE)
    report(result)
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
