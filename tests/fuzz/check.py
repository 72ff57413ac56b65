"""Whether a module of random graphs gives the same numbers in every way; which of them does not."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuvil.ir.dtypes import from_numpy
from tests.fuzz.batch import Batch, Case, build
from tests.fuzz.modes import MODES, Way, is_rough, ways

Array = np.ndarray[Any, Any]
TOLERANCE = {"f16": 4e-2, "bf16": 2e-1, "f32": 2e-3, "f64": 2e-5}
ROUGH = {**TOLERANCE, "f32": 1e-1}  # where products are of bf16


@dataclass(frozen=True)
class Fault:
    """What went wrong: the graphs (one, or all of a module), the way, an explanation."""

    numbers: tuple[int, ...]
    way: str
    what: str


@dataclass
class Result:
    """The faults of a module; how often each primitive and element type stood in it, and each rule
    was applied."""

    faults: list[Fault] = field(default_factory=list)
    primitives: Counter[str] = field(default_factory=Counter)
    dtypes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    graphs: int = 0

    def add(self, other: Result) -> None:
        self.faults += other.faults
        self.graphs += other.graphs
        for mine, theirs in zip(self.counters(), other.counters(), strict=True):
            mine.update(theirs)

    def counters(self) -> tuple[Counter[str], ...]:
        return self.primitives, self.dtypes, self.rules, self.ways


def check(cases: Sequence[Case], modes: Sequence[str] = MODES, number: int | None = None) -> Result:
    """Computes a module in every way of these modes. number: of the module (None: of its first
    graph); the same number, the same options."""
    batch = build(cases)
    result = Result(graphs=len(cases))
    names, kinds = batch.counts()
    result.primitives, result.dtypes = names, kinds
    number = cases[0].number if number is None else number
    for mode in modes:
        try:
            for way in ways(batch, number, [mode], result.rules):
                result.faults += _run(batch, way, ROUGH if is_rough(number) else TOLERANCE)
                result.ways[way.name] += 1
        except Exception:
            result.faults += _blamed(cases, mode, number, traceback.format_exc(limit=-6))
    return result


def _blamed(cases: Sequence[Case], mode: str, number: int, said: str) -> list[Fault]:
    """The graphs that cannot be compiled, or run, even by themselves."""
    if len(cases) == 1:
        return [Fault((cases[0].number,), mode, said)]
    found = [f for case in cases for f in check([case], [mode], number).faults]
    return found or [Fault(tuple(c.number for c in cases), mode, said)]


def _run(batch: Batch, way: Way, tolerance: Mapping[str, float] = TOLERANCE) -> list[Fault]:
    """The first difference of every graph, for every environment of the way."""
    faults: dict[int, Fault] = {}
    for env in way.envs:
        got = way.run(batch.feeds(env))
        rows = zip(batch.owners(), got, batch.wants[env], batch.exact, strict=True)
        for (section, i), a, b, exact in rows:
            said = differences(np.asarray(a), b, exact, tolerance)
            number = section.case.number
            if said and number not in faults:
                what = f"output {i}, {batch.module.envs[env]}: {said}"
                faults[number] = Fault((number,), way.name, what)
    return list(faults.values())


def differences(
    got: Array, want: Array, exact: bool, tolerance: Mapping[str, float] = TOLERANCE
) -> str:
    """What is wrong with an output; "" where nothing is."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    if got.dtype.kind in "biu":
        bad = got != want
        a, b = got, want
    else:
        a, b = (np.asarray(x, np.float64) for x in (got, want))
        limit = tolerance.get(from_numpy(want.dtype).name, 0.0)
        near = np.zeros(a.shape, bool) if exact else _near(a, b, limit)
        bad = ~near & (a != b) & ~(np.isnan(a) & np.isnan(b))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, first {at}: {a[at]} for {b[at]}"


def _near(a: Array, b: Array, limit: float) -> Array:
    finite = b[np.isfinite(b)]
    scale = max(1.0, float(np.abs(finite).max(initial=0)))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(a - b) <= limit * scale)
