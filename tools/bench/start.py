"""How soon a model runs: compile times, load, first run, and memory of several processes.

    python -m tools.bench.start [MODEL...] [--no-compile] [--no-load] [--processes 8]

MODEL: names of the zoo, by default bert-base. Every figure is taken in new processes with the files
in the page cache:

- compile: `-O0` in a process that has imported the compiler; `-O0` from nothing to a library with
  its weights inside; the default from nothing;
- load: `cuvil.load` where only `cuvil_runtime` was imported, the median of some processes;
- first: the first run after `warmup`, over the median of later runs of the same process;
- memory: the share (PSS) of all processes that have loaded the library and run it, and of one; of
  it the mapped files of the model, which all share; and what a process has of its own, beside that
  of one that has imported cuvil_runtime and loaded nothing.
"""

from __future__ import annotations

import argparse
import re
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

_IDLE = """
import sys
import numpy as np
import cuvil_runtime
print(flush=True)
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
class Memory:
    """MB of processes. share: PSS; files: of that, files of the model; own: memory that is no
    file's."""

    share: float = 0
    files: float = 0
    own: float = 0

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.share + other.share, self.files + other.files, self.own + other.own)


@dataclass(frozen=True)
class Loaded:
    """load_ms: of `cuvil.load`; first: the first run over the median; one, every: memory of one
    process, and of all of them together; idle: of one that has loaded nothing."""

    load_ms: float
    first: float
    one: Memory
    every: Memory
    idle: Memory


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
    one, every, idle = (
        _memory(words, 1),
        _memory(words, processes),
        _memory([_IDLE, str(folder)], 1),
    )
    return Loaded(median(r[0] for r in rows), median(r[1] for r in rows), one, every, idle)


def _output(words: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr.strip().rpartition("\n")[2])
    return done.stdout


def _memory(words: list[str], count: int) -> Memory:
    """Of so many processes together, all of them alive, when they have said something. words: the
    script and its arguments, the first a file in the model's folder, or that folder."""
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
        folder = Path(words[1]) if Path(words[1]).is_dir() else Path(words[1]).parent
        return sum((_memory_of(process.pid, folder) for process in running), Memory())
    finally:
        for process in running:
            process.communicate("")


def _memory_of(pid: int, folder: Path) -> Memory:
    found, ours = Memory(), False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, _, rest = line.partition(":")
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            ours = f" {folder.resolve()}/" in line
        elif name in ("Pss", "Anonymous"):
            mb = int(rest.split()[0]) * 1024 / MB
            share = mb if name == "Pss" else 0
            found += Memory(share, share * ours, mb - share)
    return found


def _print_memory(found: Loaded, processes: int) -> None:
    one, every, idle = found.one, found.every, found.idle
    more = (every.share - one.share) / max(1, processes - 1)
    own = every.own / processes
    print(f"  memory of one process    {one.share:8.1f} MB, of {processes} {every.share:.1f} MB: "
          f"{more:.1f} MB for each more")  # fmt: skip
    print(f"    files of the model     {one.files:8.1f} MB, mapped by {processes}: "
          f"{every.files:.1f} MB in all")  # fmt: skip
    print(f"    a process's own        {own:8.1f} MB, of which {idle.own:.1f} MB before it loads "
          "anything")  # fmt: skip


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
        _print_memory(found, given.processes)


if __name__ == "__main__":
    main()
