"""Damaged models through the whole compiler: an error or an answer, never a crash, hang or glut.

`python -m tests.fuzz.mutate --count 2000` runs every case in a worker process with a limit of
time and of memory, and prints what ended a worker, took too long, or raised anything that is not
a `cuvil.Error`. `--only NUMBER` repeats one case in this process.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from cuvil.engine.engine import Engine
from cuvil.engine.front_door import compile_engine
from cuvil.errors import Error
from cuvil.options import Options
from tests.fuzz.mutators import mutate
from tests.fuzz.seeds import SEEDS
from tests.fuzz.workers import Worker

ADDRESS_LIMIT = 10 << 30  # bytes of address space of a worker and of its own workers
RSS_LIMIT = 2 << 30  # bytes in memory
RUN_LIMIT = 1 << 28  # bytes of inputs and outputs; a model that wants more is only compiled
TIME_LIMIT = 600.0  # seconds per case, on a machine that may be busy


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
        engine.run(None, feeds, time_limit=60.0)
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


def run_cases(numbers: range) -> tuple[Counter[str], dict[int, str]]:
    """How often each outcome came, and the faults by number."""
    worker, counts, faults = Worker("tests.fuzz.mutate"), Counter[str](), {}
    for number in numbers:
        outcome = worker.ask(str(number), TIME_LIMIT, RSS_LIMIT)
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
