"""The ways in which one module is computed, all held against numpy."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cuvil.aot.write import write_artefact
from cuvil.engine.front_door import runnable_variants
from cuvil.ir.graph import Graph
from cuvil.ops.interpreter import run
from cuvil.options import Options
from cuvil.pipeline import Built, compile_graph, selection
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import Report, RewriteOptions, run_phases
from cuvil.rewrite.registry import load_rules
from cuvil.rewrite.rule import Rule
from cuvil.targets.backend import VariantSpec
from cuvil.targets.registry import find
from cuvil.targets.target_list import resolve
from cuvil_runtime import Model, load, load_object
from tests.fuzz.batch import Batch

Array = np.ndarray[Any, Any]
AfterPhase = Callable[[str, Graph], None]
Runner = Callable[[Mapping[str, Array]], Sequence[Array]]
MODES = ("phases", "planned", "plain", "jit", "aot")
LEVELS = (1, 0, 0, 1, 0, 0, 2)  # of optimisation by LLVM, in turn: one below 1 still has our rules
# Names of rules begin so: a rule that comes first would leave nothing to the others.
LEFT_OUT = (("fp16",), ("fp16", "bf16_conv"), ("bf16",))  # in turn
PLANNED_LIMIT = 20_000  # elements of all values; the interpreter of plans takes one at a time


@dataclass(frozen=True)
class Way:
    """One way to compute a module: what it is called, and how to run it for an environment."""

    name: str
    run: Runner
    envs: tuple[int, ...] = (0, 1, 2, 3)


@cache
def runnable() -> tuple[VariantSpec, ...]:
    """The variants that this machine can run, best first."""
    backend, here = resolve().host
    return tuple(runnable_variants(backend, find(here.triple)[1]))


def widths() -> list[VariantSpec]:
    """Those that serve every graph; the others are there for products of certain types."""
    return [v for v in runnable() if not v.products]


def width_of(number: int) -> VariantSpec:
    """One of them in turn."""
    return widths()[number % len(widths())]


def is_rough(number: int) -> bool:
    """Whether the number-th module is computed with fewer bits where rules can make it so."""
    return number % 12 == 7


def options_of(number: int) -> Options:
    """How the number-th module is optimised: by LLVM mostly in little time, by all rules that are
    on, and every other time by those that are off as well."""

    def asked(rule: Rule) -> bool:
        if rule.name.startswith(LEFT_OUT[number // 12 % len(LEFT_OUT)]):
            return False
        return is_rough(number) if rule.phase == "precision" else number % 2 == 1

    rules = tuple(r.name for r in load_rules() if r.on or asked(r))
    return Options(opt_level=LEVELS[number % len(LEVELS)], name="fuzz", enable_rules=rules)


def ways(batch: Batch, number: int, modes: Sequence[str], rules: Counter[str]) -> Iterator[Way]:
    """Every way of the given modes in turn. number: of the module; decides widths and options."""
    for mode in modes:
        yield from _WAYS[mode](batch, number, rules)


def _phases(batch: Batch, number: int, rules: Counter[str]) -> Iterator[Way]:
    """The reference interpreter after every phase."""
    found: list[tuple[str, list[list[Array]]]] = []

    def after(phase: str, now: Graph) -> None:
        outputs = [_reference(now, batch.feeds(env)) for env in range(4)]
        found.append((phase, outputs))

    rules.update(_rewrite(batch.copy(), number, after).counts)
    for phase, outputs in found:
        for env in range(4):
            yield Way(f"phase {phase}", lambda feed, o=outputs[env]: o, (env,))  # type: ignore[misc]


def _rewrite(graph: Graph, number: int, after: AfterPhase | None = None) -> Report:
    """By the rules for the number-th module. after: called after every phase."""
    chosen = RewriteOptions(selection(options_of(number)), after_phase=after)
    return run_phases(graph, chosen, resolve().rules())


def _reference(graph: Graph, feed: Mapping[str, Array]) -> list[Array]:
    return list(run(graph, feed).values())


def _planned(batch: Batch, number: int, _: Counter[str]) -> Iterator[Way]:
    """The plan, verified; a small one also on its interpreter."""
    graph = batch.copy()
    _rewrite(graph, number)
    plan = make_plan(graph)
    verify_plan(plan)
    for env, state in enumerate(batch.module.states):
        if sum(a.size for a in state.values.values()) < PLANNED_LIMIT and env in (1, 2):
            yield Way("planned", lambda feed: list(run_plan(plan, feed).values()), (env,))


def _plain(batch: Batch, number: int, _: Counter[str]) -> Iterator[Way]:
    """No rules, no optimisation by LLVM; one width in turn."""
    variant = width_of(number)
    plain = Options(opt_level=0, graph_fusion=False, name="fuzz")
    built = compile_graph(batch.copy(), plain, variants=[variant])
    yield from _object(built, f"plain {variant.name}", 1)


def _jit(batch: Batch, number: int, _: Counter[str]) -> Iterator[Way]:
    """All rules, as a process compiles for itself; every fourth module."""
    if number % 4 == 0:
        built = compile_graph(batch.copy(), options_of(number), variants=widths()[:1])
        yield from _object(built, f"jit {widths()[0].name}", 1 + number // 4 % 2)


def _library(batch: Batch, number: int, _: Counter[str]) -> Iterator[Way]:
    """All rules: a library with two code widths in turn."""
    left_out = width_of(number) if len(widths()) > 2 else None
    variants = [v for v in runnable() if v is not left_out]
    built = compile_graph(batch.copy(), options_of(number), variants=variants, library=True)
    with tempfile.TemporaryDirectory(prefix="cuvil-fuzz-") as folder:
        library = write_artefact(built, folder).library
        assert library is not None
        for variant in (v.name for v in built.variants):
            model = load(library, variant=variant, threads=1 + number % 2, keep_denormals=True)
            yield Way(f"aot {variant}", _runner(model))
            model.close()


def _object(built: Built, name: str, threads: int) -> Iterator[Way]:
    with tempfile.TemporaryDirectory(prefix="cuvil-fuzz-") as folder:
        path = Path(folder, "model.o")
        built.write_object(path)
        code = path.read_bytes()
    model = load_object(code, threads=threads, keep_denormals=True)
    yield Way(name, _runner(model))
    model.close()


def _runner(model: Model) -> Runner:
    names = [i.name for i in model.inputs]
    return lambda feed: model.run([feed[n] for n in names])


_WAYS: dict[str, Callable[[Batch, int, Counter[str]], Iterator[Way]]] = {
    "phases": _phases,
    "planned": _planned,
    "plain": _plain,
    "jit": _jit,
    "aot": _library,
}
