"""How soon a model runs: compile times, load, first run, and memory of several processes.

    python -m tools.bench.start [MODEL...] [--no-compile] [--no-load] [--processes 8]

MODEL: names of the zoo, by default bert-base. Every figure is taken in new processes with the files
in the page cache:

- compile: `-O0` in a process that has imported the compiler; `-O0` from nothing to a library with
  its weights inside; the default from nothing;
- load: `cuvil.load` where only `cuvil_runtime` was imported, the median of some processes;
- first: the first run after `warmup`, over the median of later runs of the same process;
- memory: the share (PSS) of all processes that have loaded the library and run it, and of one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from cuvil.aot.write import compile_to_folder
from cuvil.options import Options
from tools.models import zoo
from tools.models.case import ModelCase

ATTEMPTS = 5
MB = 1e6

_LOAD = """
import sys, time
import numpy as np
import cuvil_runtime
feed = dict(np.load(sys.argv[2]))
begin = time.perf_counter()
import cuvil
engine = cuvil.load(sys.argv[1], threads=1)
loaded = time.perf_counter() - begin
shapes = [(i.dims, feed[i.name].shape) for i in engine.get_inputs()]
engine.warmup(**{d: e for dims, s in shapes for d, e in zip(dims, s) if isinstance(d, str)})
times = []
for _ in range(12):
    begin = time.perf_counter()
    engine.run(None, feed)
    times.append(time.perf_counter() - begin)
print(loaded * 1e3, times[0] / sorted(times[1:])[len(times) // 2], flush=True)
sys.stdin.read()
"""

_JIT = """
import sys, time
import cuvil
from cuvil.engine import front_door
begin = time.perf_counter()
cuvil.compile(sys.argv[1], opt_level=0, cache=False)
print(time.perf_counter() - begin)
"""

_CLI = "import sys; from cuvil.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Loaded:
    """load_ms: of `cuvil.load`; first: the first run over the median; mb: PSS of one process and of
    all of them."""

    load_ms: float
    first: float
    one_mb: float
    all_mb: float


def compile_seconds(path: str) -> dict[str, float]:
    """How to compile -> seconds, each in a new process."""
    with tempfile.TemporaryDirectory(prefix="cuvil-start-") as folder:
        jit = float(_output([_JIT, path]))
        ways = {"-O0 to .so": ["-O0", "--weights", "embed"], "default to .so": []}
        found = {"-O0 in process": jit}
        for name, words in ways.items():
            begin = time.perf_counter()
            _output([_CLI, "compile", path, "-o", folder, *words])
            found[name] = time.perf_counter() - begin
    return found


def loaded(case: ModelCase, folder: Path, processes: int) -> Loaded:
    """What loading and running the model's library costs."""
    library = compile_to_folder(case.path, folder, Options()).library
    feed, inputs = folder / "feed.npz", case.inputs(0)
    np.savez(feed, **inputs)
    words = [_LOAD, str(library), str(feed)]
    rows = [tuple(map(float, _output(words).split())) for _ in range(ATTEMPTS)]
    one, every = _shares(words, 1), _shares(words, processes)
    return Loaded(median(r[0] for r in rows), median(r[1] for r in rows), sum(one), sum(every))


def _output(words: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr.strip().rpartition("\n")[2])
    return done.stdout


def _shares(words: list[str], count: int) -> list[float]:
    """PSS in MB of so many processes that have run the model, all of them alive."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(count)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        return [_pss(process.pid) for process in running]
    finally:
        for process in running:
            process.communicate("")


def _pss(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / MB
    raise SystemExit("/proc has no smaps_rollup")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["bert-base"], metavar="MODEL")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--no-load", action="store_true")
    parser.add_argument("--processes", type=int, default=8)
    given = parser.parse_args()
    for name in given.models:
        case = zoo.get(name)
        print(name)
        for way, seconds in {} if given.no_compile else compile_seconds(case.path).items():
            print(f"  compile {way:16} {seconds:8.2f} s", flush=True)
        if given.no_load:
            continue
        with tempfile.TemporaryDirectory(prefix="cuvil-start-") as folder:
            found = loaded(case, Path(folder), given.processes)
        print(f"  load                     {found.load_ms:8.2f} ms")
        print(f"  first run over median    {found.first:8.2f}")
        extra = (found.all_mb - found.one_mb) / max(1, given.processes - 1)
        print(f"  memory of one process    {found.one_mb:8.1f} MB, of {given.processes} "
              f"{found.all_mb:.1f} MB: {extra:.1f} MB for each more")  # fmt: skip


if __name__ == "__main__":
    main()
