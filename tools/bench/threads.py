"""What more threads gain, beside what the machine gains by them.

    python -m tools.bench.threads [MODEL...] [--threads 2] [--seconds 20]

MODEL: names of the zoo, by default bert-base and resnet50. In turn in one process run a loop of
independent multiply-adds, a read of memory, and the model, each on one thread and on several.
Printed for each model:

- its arithmetic on one thread, over the loop's;
- its speed-up, and the share of the loop's that it is;
- the most that could be: a kernel on several threads takes at least its time on one over the loop's
  speed-up, and at least as long as memory takes to hand over its weights, where those of the model
  do not fit into the last cache and so come from memory in every run;
- kernels of one name together, those first that are furthest from the loop's speed-up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from cuvil.cli.inputs import Array
from cuvil.cli.kernels import KernelTime, is_heavy, kernel_times
from cuvil.engine.cache_key import Wanted
from cuvil.engine.cached import load_folder
from cuvil.engine.engine import Engine
from cuvil.engine.front_door import build_wanted
from cuvil.ir.host import LaunchOp, ViewOp, WeightOp
from cuvil.options import Options
from cuvil.plan.plan import Plan
from tools.bench.flops import model_flops
from tools.bench.limits import Loops
from tools.bench.timing import interleaved, speedups
from tools.models import zoo

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
SHOWN = 8


@dataclass(frozen=True)
class Gain:
    """What several threads make faster by themselves. speedup: of the loop; rate: bytes a second
    that all of them read together."""

    speedup: float
    rate: float


@dataclass
class Kernel:
    """Launches of one kernel: how many, their seconds on one thread and on several, and the bytes
    of weights that they read from memory."""

    name: str
    launches: int = 0
    alone: float = 0.0
    together: float = 0.0
    weights: int = 0

    def least(self, gain: Gain) -> float:
        """Seconds on several threads that nothing could go below."""
        return max(self.alone / gain.speedup, self.weights / gain.rate)


def best_share(kernels: Sequence[Kernel], gain: Gain) -> float:
    """The share of the loop's speed-up that the sum of kernels could reach."""
    alone, least = sum(k.alone for k in kernels), sum(k.least(gain) for k in kernels)
    return alone / least / gain.speedup


def weight_bytes(plan: Plan) -> list[tuple[str, int]]:
    """The kernel of every launch, in the program's order, and the bytes of weights that it reads:
    of products and convolutions, since others may read a few rows of a table."""
    return [
        (
            op.kernel.data,
            sum(_constant(plan, value) for value in op.buffers) * is_heavy(op.kernel.data),
        )
        for op in plan.program.walk()
        if isinstance(op, LaunchOp)
    ]


def _constant(plan: Plan, value: object) -> int:
    op = getattr(value, "op", None)
    while isinstance(op, ViewOp):
        op = op.source.owner
    return plan.pool.get(op.key.data).nbytes if isinstance(op, WeightOp) else 0


def last_cache_bytes() -> int:
    """Bytes of the largest cache of the first cpu, 0 where the system does not tell."""
    sizes = [path.read_text().strip() for path in CACHES.glob("index*/size")]
    return max((int(s.removesuffix("K")) << 10 for s in sizes if s.endswith("K")), default=0)


def kernels_of(
    plan: Plan, engines: Sequence[Engine], feed: Mapping[str, Array], seconds: float, cache: int
) -> list[Kernel]:
    """The kernels of a run, timed in turn on one thread and on several: medians of each launch."""
    samples: list[list[list[KernelTime]]] = [[], []]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples[0]) < 3:
        for engine, runs in zip(engines, samples, strict=True):
            runs.append(kernel_times(engine, feed, runs=1))
    names = [launch.kernel for launch in samples[0][0]]
    given = weight_bytes(plan)
    known = [name for name, _ in given] == names
    streamed = known and sum(size for _, size in given) > cache
    found: dict[str, Kernel] = {}
    for i, name in enumerate(names):
        kernel = found.setdefault(name, Kernel(name))
        kernel.launches += 1
        kernel.alone += median(run[i].seconds for run in samples[0])
        kernel.together += median(run[i].seconds for run in samples[1])
        kernel.weights += given[i][1] if streamed else 0
    return list(found.values())


def report(name: str, threads: int, seconds: float, loops: Loops) -> Iterator[str]:
    """The lines of one model."""
    case = zoo.get(name)
    feed = case.inputs(0)
    build = build_wanted(case.path, Wanted(Options()), lambda stage: None)
    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        build.write(Path(folder))
        engines = [load_folder(Path(folder), n) for n in (1, threads)]
    calls: dict[str, Callable[[], object]] = {}
    for engine, n in zip(engines, (1, threads), strict=True):
        calls[f"loop {n}"] = partial(loops.multiply, n)
        calls[f"read {n}"] = partial(loops.read, n)
        calls[f"model {n}"] = partial(engine.run, None, feed)
    took = interleaved(calls, budget_s=seconds, most_rounds=1000)
    loop, speedup = (speedups(took, f"{x} {threads}")[f"{x} 1"] for x in ("loop", "model"))
    gain = Gain(threads * loop, loops.bytes_read / took[f"read {threads}"].median)
    one, several = (took[f"model {n}"].median for n in (1, threads))
    yield (
        f"{name}: {one * 1e3:.2f} ms on one thread, {several * 1e3:.2f} on {threads}: "
        f"x{speedup:.3f}, {speedup / gain.speedup:.1%} of the loop's x{gain.speedup:.3f}"
    )
    rate, most = model_flops(case.path, feed) / one, loops.operations / took["loop 1"].median
    yield f"  {rate / 1e9:.1f} GFLOP/s on one, {rate / most:.1%} of the loop's {most / 1e9:.1f}"
    kernels = kernels_of(build.built.plan, engines, feed, seconds, last_cache_bytes())
    yield from _kernel_lines(kernels, gain, loops.bytes_read / took["read 1"].median)


def _kernel_lines(kernels: Sequence[Kernel], gain: Gain, rate: float) -> Iterator[str]:
    alone, both = sum(k.alone for k in kernels), sum(k.together for k in kernels)
    yield (
        f"  sum of kernels: {alone * 1e3:.2f} ms, {both * 1e3:.2f}: x{alone / both:.3f}, "
        f"{alone / both / gain.speedup:.1%}; at most {best_share(kernels, gain):.1%}, with weights "
        f"at {gain.rate / 1e9:.1f} GB/s (one thread reads {rate / 1e9:.1f})"
    )
    yield f"  {'kernel':24} {'n':>3} {'one':>9} {'all':>9} {'least':>9} us    x  weights GB/s"
    kernels = sorted(kernels, key=lambda k: k.alone / gain.speedup - k.together)
    for k in kernels[:SHOWN]:
        times = " ".join(f"{t * 1e6:9.1f}" for t in (k.alone, k.together, k.least(gain)))
        read = f"{k.weights / k.together / 1e9:6.1f}" if k.weights else ""
        yield f"  {k.name:24} {k.launches:3} {times} {k.alone / k.together:7.2f} {read:>8}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.threads", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("models", nargs="*", default=["bert-base", "resnet50"], metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2, help="2 or more")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each half of a model")
    options = parser.parse_args(argv)
    if options.threads < 2:
        parser.error("--threads: one thread has nothing to gain, give 2 or more")
    with Loops(options.threads) as loops:
        for name in options.models:
            for line in report(name, options.threads, options.seconds, loops):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
