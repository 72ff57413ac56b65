"""Many random graphs side by side in one module: one compile tests them all.

A graph depends on its number alone, so that it can be built again by itself or with others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.ir.dims import symbol, symbols
from cuvil.ir.graph import Graph
from cuvil.ir.names import Value
from cuvil.ir.record import of, tensor_type
from cuvil.ir.types import TensorType
from tests.fuzz.program import FLOATS, INTS, Misfit, Module, Program
from tests.fuzz.rule_steps import adopt, chosen, input_types
from tests.fuzz.tables import step

Array = np.ndarray[Any, Any]
NARROW = ("i4", "u4", "f8e4m3fn", "f8e5m2", "f4e2m1")
NAMES = ("B", "H", "M", "N", "S", "T", "W", "Y", "Z")  # symbols of rules' examples; Y, Z: ours
SIZES = (
    (3, 5, 2, 7, 4, 6, 8, 3, 5),
    (1, 1, 1, 1, 1, 1, 1, 1, 1),
    (2, 1, 3, 1, 2, 4, 2, 2, 0),
    (9, 4, 3, 5, 17, 8, 6, 9, 17),
)
ENVS = tuple(dict(zip(NAMES, row, strict=True)) for row in SIZES)
STEPS = 5
KINDS = ("static", "rules", "symbolic", "rules", "special", "rules", "static", "rules", "symbolic",
         "rules", "large")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One random graph. kind: of KINDS: sizes known, or symbols; long axes; a rule's example, as
    it is or changed, at its beginning; inputs that are NaN, infinite, or denormal."""

    number: int
    steps: int = STEPS
    kind: str = ""

    @property
    def what(self) -> str:
        return self.kind or KINDS[self.number % len(KINDS)]

    @property
    def nth(self) -> int:
        """How many graphs of this kind have a lower number."""
        turns, place = divmod(self.number, len(KINDS))
        return turns * KINDS.count(self.what) + KINDS[:place].count(self.what)


@dataclass
class Section:
    """One graph of a module. outputs: where it stands among the module's."""

    case: Case
    program: Program
    inputs: dict[str, Value]
    outputs: list[Value]


@dataclass
class Batch:
    """A module of several graphs, complete. wants: outputs by environment, in order."""

    module: Module
    sections: list[Section]
    graph: Graph
    wants: list[list[Array]]
    exact: list[bool]

    def feeds(self, env: int) -> dict[str, Array]:
        """All inputs for one environment."""
        found: dict[str, Array] = {}
        for section in self.sections:
            found |= section.program.feeds(section.inputs, env)
        return found

    def copy(self) -> Graph:
        """The graph, for a compile to use up."""
        return Graph(self.graph.module.clone(), self.graph.pool, dict(self.graph.bounds))

    def owners(self) -> Iterator[tuple[Section, int]]:
        """The section of every output, with the output's number in it."""
        for section in self.sections:
            yield from ((section, i) for i in range(len(section.outputs)))

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """How often each primitive and each element type stands in it."""
        names, kinds = Counter[str](), Counter[str]()
        for op in self.graph.ops():
            if op.name.startswith("cuvil.") and op.name not in ("cuvil.return", "cuvil.yield"):
                names[of(op).name] += 1
                kinds.update(tensor_type(r).dtype.name for r in op.results)
        return names, kinds


def build(cases: Sequence[Case]) -> Batch:
    """The module of these graphs; the same for the same numbers."""
    plans = [_Plan(case) for case in cases]
    types = {name: t for plan in plans for name, t in plan.types.items()}
    used = {s for t in types.values() for d in t.dims for s in symbols(d)}
    envs = [{name: env[name] for name in NAMES if name in used} for env in ENVS]
    module = Module(types, envs)
    sections = [plan.built(module) for plan in plans]
    outputs = [v for s in sections for v in s.outputs]
    names = [f"g{s.case.number}_y{i}" for s in sections for i in range(len(s.outputs))]
    exact = [v in s.program.exact for s in sections for v in s.outputs]
    wants = [[state.values[v] for v in outputs] for state in module.states]
    graph = module.finish(dict(zip(names, outputs, strict=True)))
    return Batch(module, sections, graph, wants, exact)


class _Plan:
    """A graph before it is built: its kind, the example it begins with, the types of its inputs."""

    def __init__(self, case: Case) -> None:
        self.case = case
        what = case.what
        rules = what == "rules"
        self.program = Program(
            case.number, large=what == "large", rules=rules, special=what == "special"
        )
        p = self.program
        self.example = chosen(p, case.nth) if rules else None
        if self.example is not None:
            types: Mapping[str, TensorType] = input_types(self.example[0], self.example[2])
        else:
            types = _inputs(p, what == "symbolic" or (what == "special" and p.chance(0.3)))
        self.types = {f"g{case.number}_{name}": t for name, t in types.items()}

    def built(self, module: Module) -> Section:
        p = self.program
        inputs = {name: module.inputs[name] for name in self.types}
        p.begin(module, inputs)
        made: list[Value] = []
        if self.example is not None:
            with suppress(Misfit):
                adopt(p, *self.example)
            made = [v for v in p.pickable if v not in module.graph.inputs]
        steps = p.number(0, 2) if self.example is not None else p.number(1, self.case.steps)
        for _ in range(8 * self.case.steps):
            if steps == 0:
                break
            with suppress(Misfit):
                made.append(step(p))
                p.keep(made[-1], exact=False)
                steps -= 1
        return Section(self.case, p, inputs, _outputs(p, made))


def _inputs(p: Program, symbolic: bool) -> dict[str, TensorType]:
    """Two to four inputs, so that some share their dims."""
    shape = [p.extent() for _ in range(p.number(2, 4))]
    while np.prod(shape) > p.max_size / 4:
        shape[int(np.argmax(shape))] = p.number(1, 3)
    free = [symbol(p.choice("YZ")) if symbolic and p.chance(0.5) else d for d in shape]
    types = {"x0": TensorType.of(free, "f32" if p.chance(0.8) else p.choice(FLOATS))}
    for i in range(1, p.number(2, 4)):
        dims = [d if p.chance(0.8) else 1 for d in free[p.number(0, 2) :]]
        kind = p.choice((*FLOATS, *INTS, "bool")) if p.chance(0.6) else "f32"
        if p.chance(0.03):
            kind = p.choice(NARROW)
        types[f"x{i}"] = TensorType.of(dims, kind)
    return types


def _outputs(p: Program, made: Sequence[Value]) -> list[Value]:
    """All that nobody reads, some of what is read, now and then an input or one value twice."""
    made = list(dict.fromkeys(v for v in made if not p.is_constant(v)))
    ends = [v for v in made if v.first_use is None]
    rate = 0.05 if p.indices else 0.2
    outputs = ends + [v for v in made if v.first_use is not None and p.chance(rate)]
    if p.chance(0.1):
        outputs.append(p.choice(p.pickable))
    return outputs or [p.pickable[0]]
