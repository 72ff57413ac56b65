"""One suite, many levels: a model means the same as tensors, as rewritten tensors, as a program
with kernels, as the text of these, and as native code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from levels.examples import EXAMPLES, Example, plan_text

import cuvil.ops
from cuvil.engine.front_door import compile_engine
from cuvil.ir.text import parse_ir
from cuvil.ops import interpreter
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import Plan, make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import RewriteOptions, run_phases
from cuvil.rewrite.rule import PHASES
from cuvil.rewrite.verify import verify_phase

assert cuvil.ops is not None
Array = np.ndarray[Any, Any]
Level = Callable[[Example, Mapping[str, Array]], Mapping[str, Array]]


def rewritten(phase: str) -> Level:
    """The graph as it is after a phase."""

    def run(example: Example, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        graph = example.graph()
        phases = PHASES[: PHASES.index(phase) + 1]
        run_phases(graph, RewriteOptions(phases=phases))
        verify_phase(graph, phase)
        return interpreter.run(graph, feeds)

    return run


def verified(plan: Plan) -> Plan:
    """The plan, checked."""
    verify_plan(plan)
    return plan


def planned(example: Example, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    """The host program and its kernels, interpreted."""
    graph = example.graph()
    run_phases(graph)
    return run_plan(verified(make_plan(graph)), feeds)


def planned_as_imported(example: Example, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    """The same without any rewriting: the plan serves every graph."""
    return run_plan(verified(make_plan(example.graph())), feeds)


def parsed(example: Example, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    """The program and kernels that are read back from their text."""
    graph = example.graph()
    run_phases(graph)
    plan = make_plan(graph)
    ops = list(parse_ir(plan_text(plan)).body.block.ops)
    kernels = {op.sym_name.data: op for op in ops[1:]}
    return run_plan(verified(replace(plan, program=ops[0], kernels=kernels)), feeds)


def native(example: Example, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    """Machine code for this machine."""
    engine = compile_engine(example.graph(), Options(target="cpu", opt_level=1))
    names = [port.name for port in engine.get_outputs()]
    return dict(zip(names, engine.run(None, feeds), strict=True))


LEVELS: dict[str, Level] = {
    **{phase: rewritten(phase) for phase in PHASES},
    "host and nest": planned,
    "host and nest, no rules": planned_as_imported,
    "host and nest, as text": parsed,
    "native": native,
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_level_means_the_same(name: str, level: str) -> None:
    example = EXAMPLES[name]
    feeds = example.feeds()
    want = interpreter.run(example.graph(), feeds)
    got = LEVELS[level](example, feeds)
    assert list(got) == list(want)
    for key, expected in want.items():
        close(got[key], expected, example.tolerance)


def close(got: Array, want: Array, tolerance: float) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    scale = np.abs(want).max(initial=0)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * float(scale))
