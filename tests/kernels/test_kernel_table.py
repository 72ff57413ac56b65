"""Every row of the table of fast kernels gives what its op means; rows are found by condition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuvil import pipeline
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.kernel_table import (
    CORE_ROWS,
    KernelCase,
    KernelRow,
    row_for,
    templates_of,
    usable,
)
from cuvil.codegen.template_llvm import TemplateCode, emit_contract
from cuvil.engine.front_door import HostBuild, build_for_host, load_built, runnable_variants
from cuvil.ir import nest
from cuvil.ops.interpreter import run as interpret
from cuvil.options import Options
from cuvil.pipeline import Built
from cuvil.targets.registry import find
from cuvil.targets.target_list import Targets
from tools.bench.kernels import case_arrays, case_feeds, case_graph, table

CASES = [(row, case) for row in table() for case in row.cases]
NARROW, WIDE = TargetFacts("narrow", byte_pick="pick"), TargetFacts("wide", vector_bits=512)
SCALAR = TargetFacts("scalar", vector_bits=32)
CONTRACT = row_for(CORE_ROWS, "contract", NARROW)


def build(case: KernelCase) -> Built:
    return build_for_host(case_graph(case, case_arrays(case)), Options(), lambda stage: None)


def kinds_of(built: Built) -> set[str]:
    """The kinds of the templates in a plan."""
    ops = [op for kernel in built.plan.kernels.values() for op in kernel.body.block.ops]
    return {op.kind.data for op in ops if isinstance(op, nest.TemplateOp)}


def check(built: Built, case: KernelCase) -> None:
    arrays = case_arrays(case)
    feeds = case_feeds(case, arrays)
    want = interpret(case_graph(case, arrays), feeds)["y"]
    (got,) = load_built(HostBuild(built), 1).run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_row_with_a_template_has_cases() -> None:
    assert [row.kind for row in table() if row.template is not None and not row.cases] == []


@pytest.mark.parametrize(("row", "case"), CASES, ids=lambda x: getattr(x, "kind", "on"))
def test_a_row_computes_what_its_op_means(row: KernelRow, case: KernelCase) -> None:
    built = build(case)
    assert kinds_of(built) == {row.kind}
    check(built, case)


def test_rows_are_chosen_by_the_facts() -> None:
    wide = KernelRow("contract", emit_contract, when=lambda facts: facts.vector_bits == 512)
    rows = (wide, *CORE_ROWS)
    assert row_for(rows, "contract", WIDE) is wide
    assert row_for(rows, "contract", NARROW) is CONTRACT


def test_a_kind_that_not_every_target_has_code_for_is_not_planned() -> None:
    special = KernelRow("special", emit_contract, when=lambda facts: facts.vector_bits == 512)
    assert special in usable((special, *CORE_ROWS), [WIDE])
    assert usable((special, *CORE_ROWS), [WIDE, NARROW]) == usable(CORE_ROWS, [NARROW])


def test_a_plan_is_made_for_the_best_target() -> None:
    def planned(*targets: TargetFacts) -> set[str]:
        wanted = templates_of(CORE_ROWS, targets)
        return {row.kind for row in CORE_ROWS if row.template in wanted}

    assert planned(NARROW, SCALAR) == planned(NARROW) == {row.kind for row in CORE_ROWS}
    assert planned(SCALAR) == {"contract", "depthwise"}


@pytest.mark.parametrize("kind", ["winograd", "attention", "lookup"])
def test_a_build_without_vectors_computes_the_plan_of_one_with(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, target = find("cpu")
    last = runnable_variants(backend, target)[-1]
    scalar = replace(last, facts=replace(last.facts, vector_bits=32))
    monkeypatch.setattr(
        pipeline, "templates_of", lambda rows, facts: templates_of(rows, [NARROW, *facts])
    )
    case = row_for(CORE_ROWS, kind, NARROW).cases[-1]
    graph = case_graph(case, case_arrays(case))
    built = pipeline.compile_graph(graph, Options(), variants=[scalar])
    assert kinds_of(built) == {kind}
    check(built, case)


@pytest.mark.parametrize("takes", [True, False])
def test_a_backends_row_goes_before_cores(takes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    emitted = []

    def emit(*arguments: Any) -> TemplateCode:
        emitted.append(arguments[4])
        return emit_contract(*arguments)

    backend, target = find("cpu")
    row = KernelRow("contract", emit, when=lambda facts: takes)
    mine = replace(backend, kernels=(row,))
    monkeypatch.setattr(pipeline, "resolve", lambda *_: Targets((), (mine, target)))
    case = CONTRACT.cases[0]
    check(build(case), case)
    best = next(v for v in runnable_variants(backend, target) if not v.products)
    assert emitted == ([f"case.{best.name}.k0_contract"] if takes else [])


def test_a_template_of_some_targets_is_not_planned_where_others_take_part() -> None:
    own = replace(CONTRACT, when=lambda facts: facts.vector_bits == 512)
    rows = [own, replace(CONTRACT, template=None)]
    assert templates_of(rows, [WIDE]) == [CONTRACT.template]
    assert templates_of(rows, [WIDE, NARROW]) == []
    contracts = [row for row in CORE_ROWS if row.kind == "contract"]
    assert templates_of(contracts, [SCALAR, NARROW]) == [CONTRACT.template]
