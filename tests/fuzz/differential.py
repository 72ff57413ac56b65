"""Random programs: numpy against plain native code against rewritten native code.

`python -m tests.fuzz.differential --count 200 --seed 0 --steps 16` prints every difference with
the seed that repeats it and the program's text.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.engine.cached import WEIGHTS
from cuvil.engine.engine import Engine
from cuvil.engine.front_door import HostBuild, compile_engine, load_built
from cuvil.errors import RuntimeFailure
from cuvil.ir.dims import symbol, symbols
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.graph import Graph
from cuvil.ir.names import Value
from cuvil.ir.text import print_ir
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import run
from cuvil.options import Options
from cuvil.pipeline import compile_graph
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.rewrite.engine import run_phases
from cuvil.rewrite.registry import load_rules
from cuvil.rewrite.rule import parse_type
from cuvil.targets.registry import find
from tests.fuzz.heavy_steps import step
from tests.fuzz.program import FLOATS, INTS, Misfit, Program

Array = np.ndarray[Any, Any]
MODES = {
    "plain": Options(opt_level=0, graph_fusion=False),
    "rewritten": Options(opt_level=2),
    "narrow": Options(opt_level=2),  # for a weaker cpu than this one
    "planned": Options(),
}
TOLERANCE = {"f16": 4e-2, "bf16": 2e-1, "f32": 2e-3, "f64": 2e-5}
ENVS: tuple[dict[str, int], ...] = (
    {"A": 3, "B": 5},
    {"A": 1, "B": 1},
    {"A": 2, "B": 0},
    {"A": 9, "B": 17},
)

RULE_SIZES = ((3, 5, 2, 7, 4, 6), (1,) * 6, (2, 1, 3, 1, 2, 2), (9, 17, 4, 3, 8, 5))


@dataclass(frozen=True)
class Fault:
    """What went wrong: mode, output, explanation."""

    mode: str
    what: str


@dataclass(frozen=True)
class Case:
    """One random program. symbolic: with extents of the run; large: with long axes; rules: it
    begins with graphs for which rewrite rules are written, or nearly so."""

    seed: int
    steps: int
    symbolic: bool = False
    large: bool = False
    rules: bool = False


def case_of(seed: int, steps: int) -> Case:
    """The kinds in turn."""
    kind = seed % 6
    return Case(seed, steps, symbolic=kind % 2 == 1, large=kind in (2, 3), rules=kind > 3)


def program(case: Case) -> tuple[Program, Graph]:
    """The program of a case, finished; the same each time."""
    rng = np.random.default_rng(case.seed)
    if case.rules:
        p, first = _of_rules(rng)
    else:
        p, first = Program(rng, ENVS if case.symbolic else ENVS[:1], case.large), []
        p.begin(_inputs(p, case.symbolic))
    made = list(first)
    for _ in range(8 * case.steps):
        try:
            made.append(step(p))
        except Misfit:
            continue
        p.keep(made[-1], exact=False)
        if len(made) >= case.steps + len(first):
            break
    return p, p.finish(_outputs(p, made))


def _of_rules(rng: np.random.Generator) -> tuple[Program, list[Value]]:
    """Two or three examples or near misses of rules, side by side."""
    found = [c for rule in load_rules() for c in (*rule.examples, *rule.near_misses)]
    chosen = [found[i] for i in rng.integers(len(found), size=rng.integers(2, 4))]
    types = {
        f"{name}{i}": parse_type(text)
        for i, c in enumerate(chosen)
        for name, text in c.inputs.items()
    }
    names = sorted({s for kind in types.values() for d in kind.dims for s in symbols(d)})
    envs = [dict(zip(names, sizes, strict=False)) for sizes in RULE_SIZES]
    p = Program(rng, envs, indices=True)
    p.begin(types)
    assert p.graph is not None
    inputs = dict(zip(types, p.graph.inputs, strict=True))
    for i, c in enumerate(chosen):
        with suppress(Misfit):
            p.adopt(c.build, *(inputs[f"{name}{i}"] for name in c.inputs))
    return p, [v for v in p.pickable if v.owner is not p.graph.block]


def _inputs(p: Program, symbolic: bool) -> dict[str, TensorType]:
    """Two to four inputs, so that some share their dims."""
    shape = [p.extent() for _ in range(p.number(2, 4))]
    free = [symbol(p.choice("AB")) if symbolic and p.chance(0.5) else d for d in shape]
    types = {"x0": TensorType.of(free, "f32")}
    for i in range(1, p.number(2, 4)):
        dims = [d if p.chance(0.8) else 1 for d in free[p.number(0, 2) :]]
        kind = p.choice((*FLOATS, *INTS, "bool")) if p.chance(0.6) else "f32"
        types[f"x{i}"] = TensorType.of(dims, kind)
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
        limit = TOLERANCE[from_numpy(want.dtype).name]
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
        bad = ~(np.abs(a - b) <= limit * scale) & (a != b) & ~(np.isnan(a) & np.isnan(b))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, first {at}: {a[at]} for {b[at]}"


def check(case: Case, modes: Iterable[str] = MODES) -> list[Fault]:
    """The faults of one program in these modes, for every environment."""
    faults = []
    for mode in modes:
        p, graph = program(case)
        exact = [v in p.exact for v in graph.outputs]
        feeds = [p.feeds(e, k) for e in range(len(p.envs)) for k in range(1 if e else 2)]
        wants = [_reference(graph, f) for f in feeds]
        try:
            runner = _runner(mode, graph, case.seed)
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


Runner = Callable[[Mapping[str, Array]], Sequence[Array]]


def _runner(mode: str, graph: Graph, seed: int) -> Runner:
    if mode == "planned":
        run_phases(graph)
        plan = make_plan(graph)
        return lambda feed: list(run_plan(plan, feed).values())
    threads = 1 + seed % 2
    if mode == "narrow":
        engine = _narrow_engine(graph, seed, threads)
    else:
        engine = compile_engine(graph, MODES[mode], threads=threads)
    return lambda feed: engine.run(None, feed)


def _narrow_engine(graph: Graph, seed: int, threads: int) -> Engine:
    """The graph built as one of the variants that this cpu can run but would not choose."""
    here = find("cpu")[1]
    backend, target = find(here.triple)
    variants = list(backend.variants(target))[1:] or list(backend.variants(target))
    chosen = variants[seed // 2 % len(variants)]
    built = compile_graph(graph, MODES["narrow"], variants=[chosen], weights_file=WEIGHTS)
    return load_built(HostBuild(built), threads)


def _compare(runner: Any, mode: str, feed: Mapping[str, Array], want: Mapping[str, Array],
             exact: Sequence[bool]) -> list[Fault]:  # fmt: skip
    shapes = {n: a.shape for n, a in feed.items()}
    try:
        got = runner(feed)
    except Exception as error:
        empty = any(0 in s for s in (*shapes.values(), *(a.shape for a in want.values())))
        if "must satisfy" in str(error) and empty:
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
    parser.add_argument("--modes", default="plain,rewritten,narrow")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    bad, start = 0, time.perf_counter()
    for seed in range(args.seed, args.seed + args.count):
        case = case_of(seed, args.steps)
        faults = check(case, args.modes.split(","))
        bad += bool(faults)
        for fault in faults[:3]:
            print(f"-- seed {seed} steps {args.steps}, {fault.mode}: {fault.what}", flush=True)
        if faults and not args.quiet:
            print(print_ir(program(case)[1].module), flush=True)
    print(f"{args.count} programs, {bad} with faults, {time.perf_counter() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
