"""Random programs: numpy against plain native code against rewritten native code.

`python -m tests.fuzz.differential --count 200 --seed 0 --steps 16` prints every difference with
the seed that repeats it and the program's text.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.engine.front_door import compile_engine
from cuvil.errors import RuntimeFailure
from cuvil.ir.dims import symbol
from cuvil.ir.graph import Graph
from cuvil.ir.names import Value
from cuvil.ir.text import print_ir
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import run
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.rewrite.engine import run_phases
from tests.fuzz.heavy_steps import step
from tests.fuzz.program import EXTENTS, FLOATS, Misfit, Program

Array = np.ndarray[Any, Any]
MODES = {
    "plain": Options(opt_level=0, graph_fusion=False),
    "rewritten": Options(opt_level=2),
    "planned": Options(),
}
TOLERANCE = {"f2": 4e-2, "f4": 2e-3, "f8": 2e-5}
ENVS: tuple[dict[str, int], ...] = (
    {"A": 3, "B": 5},
    {"A": 1, "B": 1},
    {"A": 2, "B": 0},
    {"A": 9, "B": 17},
)


@dataclass(frozen=True)
class Fault:
    """What went wrong: mode, output, explanation."""

    mode: str
    what: str


def program(seed: int, steps: int, symbolic: bool) -> tuple[Program, Graph]:
    """The program of a seed, finished; the same each time."""
    p = Program(np.random.default_rng(seed), ENVS if symbolic else ENVS[:1])
    p.begin(_inputs(p, symbolic))
    made: list[Value] = []
    for _ in range(8 * steps):
        try:
            made.append(step(p))
        except Misfit:
            continue
        p.keep(made[-1], exact=False)
        if len(made) >= steps:
            break
    return p, p.finish(_outputs(p, made))


def _inputs(p: Program, symbolic: bool) -> dict[str, TensorType]:
    """Two to four inputs, so that some share their dims."""
    shape = [p.extent() for _ in range(p.number(2, 4))]
    free = [symbol(p.choice("AB")) if symbolic and p.chance(0.5) else d for d in shape]
    types = {"x0": TensorType.of(free, "f32")}
    for i in range(1, p.number(2, 4)):
        dims = [d if p.chance(0.8) else 1 for d in free[p.number(0, 2) :]]
        kind = p.choice((*FLOATS, "i64", "bool", "i8", "u8", "i32")) if p.chance(0.6) else "f32"
        types[f"x{i}"] = TensorType.of(dims, kind)
    assert EXTENTS
    return types


def _outputs(p: Program, made: Sequence[Value]) -> list[Value]:
    """All that nobody reads, some of what is read, now and then an input or one value twice."""
    ends = [v for v in made if v.first_use is None]
    outputs = ends + [v for v in made if v.first_use is not None and p.chance(0.2)]
    if p.chance(0.2):
        outputs.append(p.choice(p.pickable))
    return outputs or [p.pickable[0]]


def differences(got: Array, want: Array, exact: bool) -> str:
    """What is wrong with an output; "" where nothing is."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    a, b = (np.asarray(x, np.float64) for x in (got, want))
    if exact or want.dtype.kind in "biu":
        bad = (a != b) & ~(np.isnan(a) & np.isnan(b))
    else:
        limit = TOLERANCE[want.dtype.str[1:]]
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
        bad = ~(np.abs(a - b) <= limit * scale) & (a != b) & ~(np.isnan(a) & np.isnan(b))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, first {at}: {a[at]} for {b[at]}"


def check(
    seed: int, steps: int, symbolic: bool, modes: Mapping[str, Options] = MODES
) -> list[Fault]:
    """The faults of one program in all modes and environments."""
    faults = []
    for mode, options in modes.items():
        p, graph = program(seed, steps, symbolic)
        exact = [v in p.exact for v in graph.outputs]
        feeds = [p.feeds(e, k) for e in range(len(p.envs)) for k in range(1 if e else 2)]
        wants = [_reference(graph, f) for f in feeds]
        try:
            runner = _runner(mode, graph, options)
        except Exception:
            faults.append(Fault(mode, traceback.format_exc(limit=-6)))
            continue
        for feed, want in zip(feeds, wants, strict=True):
            if want is not None:
                faults += _compare(runner, mode, feed, want, exact)
    return faults


def _reference(graph: Graph, feed: Mapping[str, Array]) -> Mapping[str, Array] | None:
    """What numpy gives, or None where these extents make an op impossible."""
    try:
        return run(graph, feed)
    except RuntimeFailure:
        return None


def _runner(
    mode: str, graph: Graph, options: Options
) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    if mode != "planned":
        engine = compile_engine(graph, options, threads=1)
        return lambda feed: engine.run(None, feed)
    run_phases(graph)
    plan = make_plan(graph)
    return lambda feed: list(run_plan(plan, feed).values())


def _compare(runner: Any, mode: str, feed: Mapping[str, Array], want: Mapping[str, Array],
             exact: Sequence[bool]) -> list[Fault]:  # fmt: skip
    shapes = {n: a.shape for n, a in feed.items()}
    try:
        got = runner(feed)
    except Exception as error:
        if "must satisfy" in str(error) and any(0 in shape for shape in shapes.values()):
            return []  # a window over nothing is refused, though numpy has an answer
        return [Fault(mode, f"{type(error).__name__}: {error} for {shapes}")]
    said = [
        (name, differences(np.asarray(g), w, e))
        for (name, w), g, e in zip(want.items(), got, exact, strict=True)
    ]
    return [Fault(mode, f"{name}: {text} for {shapes}") for name, text in said if text]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--modes", default="plain,rewritten")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    modes = {name: MODES[name] for name in args.modes.split(",")}
    bad, start = 0, time.perf_counter()
    for seed in range(args.seed, args.seed + args.count):
        symbolic = seed % 2 == 1
        faults = check(seed, args.steps, symbolic, modes)
        bad += bool(faults)
        for fault in faults[:3]:
            print(f"-- seed {seed} steps {args.steps}, {fault.mode}: {fault.what}", flush=True)
        if faults and not args.quiet:
            print(print_ir(program(seed, args.steps, symbolic)[1].module), flush=True)
    print(f"{args.count} programs, {bad} with faults, {time.perf_counter() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
