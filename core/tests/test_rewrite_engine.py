"""The driver: order, regions, dead code, the log, limits and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuvil.ops
from cuvil.errors import CompileError, OptionError
from cuvil.ir.build import Builder
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.names import Block, Region
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.text import print_ir
from cuvil.ops.interpreter import run
from cuvil.rewrite.engine import Application, RewriteOptions, run_phases, run_rules
from cuvil.rewrite.registry import Selection, load_rules
from cuvil.rewrite.rule import PHASES, Rule, case, parse_type, rule, sample
from cuvil.rewrite.verify import verify_phase, verify_structure

assert cuvil.ops is not None
RULES = {r.name: r for r in load_rules()}
NOTHING = case(lambda b, x: x, x="[2] f32")


def names(graph: Graph) -> list[str]:
    return [op.name.removeprefix("cuvil.") for op in graph.ops() if hasattr(op, "record")]


def temporary(*roots: str) -> Any:
    return rule(*roots, example=NOTHING, near_miss=NOTHING, phase="canonicalize")


def two_steps(b: Builder, x: Any) -> Any:
    with b.at("first"):
        y = b.mul(x, b.scalar(1, x))
    with b.at("second"):
        return b.neg(b.neg(y))


def test_every_application_is_numbered_and_placed() -> None:
    report = run_phases(case(two_steps, x="[B] f32").graph())
    assert [(a.number, a.rule, a.place) for a in report.applications] == [
        (1, "neutral_operand", "first"),
        (2, "involution", "second"),
    ]


def test_stop_after_leaves_the_graph_as_it_then_was() -> None:
    graphs = [case(two_steps, x="[B] f32").graph() for _ in range(3)]
    for limit, graph in enumerate(graphs):
        assert run_phases(graph, RewriteOptions(stop_after=limit)).total == limit
    assert names(graphs[0]) == ["constant", "mul", "neg", "neg"]
    assert "mul" not in names(graphs[1])
    assert names(graphs[2]) == []


def test_watch_sees_the_graph_after_each_application() -> None:
    seen: list[tuple[str, int]] = []

    def watch(application: Application, graph: Graph) -> None:
        verify_structure(graph)
        seen.append((application.rule, len(names(graph))))

    run_phases(case(two_steps, x="[B] f32").graph(), RewriteOptions(watch=watch))
    assert [name for name, _ in seen] == ["neutral_operand", "involution"]


def test_new_ops_carry_the_location_of_what_they_replace() -> None:
    graph = case(lambda b, x: b.pow(x, b.scalar(2, x)), x="[B] f32").graph()
    run_phases(graph)
    assert 'loc("case"' in print_ir(graph.module, locations=True)


def test_an_endless_rule_is_named() -> None:
    @temporary("neg")
    def forth(b: Any, op: Any) -> Any:
        """Never ends."""
        return b.neg(b.identity(op.operands[0]))

    with pytest.raises(CompileError, match=r"does not end: .*'forth'"):
        run_rules(case(lambda b, x: b.neg(x), x="[B] f32").graph(), [forth])


def test_a_failing_rule_is_named_with_its_place() -> None:
    @temporary("neg")
    def wrong(b: Any, op: Any) -> Any:
        """Changes the type."""
        return b.reshape(op.operands[0], dims=(1, 7))

    with pytest.raises(CompileError, match=r"rule 'wrong' failed at case"):
        run_rules(case(lambda b, x: b.neg(x), x="[7] f32").graph(), [wrong])


def test_what_a_rule_built_in_vain_is_removed() -> None:
    @temporary("neg")
    def undecided(b: Any, op: Any) -> None:
        """Builds, then says no."""
        b.exp(op.operands[0])

    graph = case(lambda b, x: b.neg(x), x="[7] f32").graph()
    assert run_rules(graph, [undecided]).total == 0
    assert names(graph) == ["neg"]


def test_equal_ops_become_one() -> None:
    graph = case(lambda b, x, y: b.sub(b.add(x, y), b.add(x, y)), x="[B] f32", y="[B] f32").graph()
    assert run_phases(graph).counts == {"cse": 1}
    assert names(graph) == ["add", "sub"]


def choice() -> Graph:
    """y = x * 1 before an if; both branches compute exp(x), one adds a dead op."""
    graph = new_graph("g", {"c": parse_type("[] bool"), "x": parse_type("[B] f32")}, Pool())
    b = Builder(graph.block, graph.pool)
    condition, x = graph.inputs
    outer = b.exp(x)
    branches = []
    for extra in ("neg", "abs"):
        block = Block()
        inner = Builder(block, graph.pool)
        inner.emit("sin", [x])
        inner.yield_(inner.emit(extra, [inner.mul(inner.exp(x), inner.scalar(1, x))]))
        branches.append(Region(block))
    (result,) = b.emit_regions("if", [condition], [tensor_type(outer)], branches)
    return finish_graph(graph, {"y": b.add(result, outer)})


def test_regions_are_rewritten_too_and_see_outer_values() -> None:
    graph = choice()
    feeds = {"c": np.array(True), "x": np.float32([1, 2])}
    before = run(graph, feeds)["y"]
    run_phases(graph)
    verify_phase(graph, "layout")
    assert names(graph) == ["exp", "if", "neg", "abs", "add"]
    np.testing.assert_array_equal(run(graph, feeds)["y"], before)


def test_work_is_not_pulled_into_a_region() -> None:
    graph = choice()
    run_rules(graph, [RULES["neutral_operand"]])
    exp = next(op for op in graph.ops() if op.name == "cuvil.exp")
    assert exp.parent is graph.block


def test_groups_select_rules() -> None:
    def build(b: Any, x: Any) -> Any:
        weights = b.const(sample(4, 3, 2))
        y = b.conv(x, weights, strides=(1,), dilations=(1,), pads=(0, 0))
        return b.mul(y, b.sigmoid(y))

    def result(*passes: str) -> set[str]:
        graph = case(build, x="[B, 3, 9] f32").graph()
        run_phases(graph, RewriteOptions(Selection(passes)))
        return set(names(graph))

    assert result() == {"constant", "conv", "sigmoid", "mul"}
    assert result("fuse_norm_act") == {"constant", "conv", "silu"}
    assert result("memory_packing") == {"constant", "conv", "sigmoid", "mul", "transpose"}
    assert result("silu", "vectorize_matmul") == {"constant", "conv", "silu"}


def test_rules_are_switched_by_name() -> None:
    def chosen(**how: Any) -> set[str]:
        return {r.name for r in Selection(**how).choose(load_rules())}

    assert "merge_products" not in chosen()
    assert "merge_products" in chosen(enable=("merge_products",))
    assert "gelu" not in chosen(disable=("gelu",), enable=("gelu",))


@pytest.mark.parametrize("how", [{"passes": ("gelo",)}, {"disable": ("gelo",)}])
def test_an_unknown_name_is_an_error_that_names_the_nearest(how: Any) -> None:
    with pytest.raises(OptionError, match=r"unknown (pass|rule) 'gelo'; did you mean gelu"):
        Selection(**how).choose(load_rules())


def test_a_backend_brings_rules_of_its_own() -> None:
    @temporary("exp")
    def base_two(b: Any, op: Any) -> Any:
        """e**x by exp2."""
        return b.exp2(b.mul(op.operands[0], b.scalar(1.4426950408889634, op.operands[0])))

    graph = case(lambda b, x: b.exp(x), x="[B] f32").graph()
    assert run_phases(graph, rules=[base_two]).counts == {"base_two": 1}


def test_phases_leave_their_forms_only() -> None:
    def build(b: Any, x: Any) -> Any:
        attrs = {"strides": (1,), "dilations": (1,), "pads": (1, 1)}
        return b.conv(x, b.const(sample(4, 3, 3)), b.const(sample(4)), **attrs)

    graph = case(build, x="[B, 3, 9] f32").graph()
    with pytest.raises(CompileError, match="case: a convolution with a bias after phase canon"):
        verify_phase(graph, "canonicalize")
    for phase in ("canonicalize", "fuse", "layout"):
        run_phases(graph, RewriteOptions(phases=(phase,)))
        verify_phase(graph, phase)


def test_large_constants_are_folded_when_needed() -> None:
    graph = case(
        lambda b, x: b.add(x, b.exp(b.const(sample(40)))), x="[40] f32"
    ).graph()  # fmt: skip
    evaluated = len(graph.pool)
    run_phases(graph)
    assert names(graph) == ["constant", "add"]
    assert len(graph.pool) == evaluated + 1
    feeds = {"x": np.zeros(40, "f4")}
    np.testing.assert_allclose(run(graph, feeds)["out0"], np.exp(sample(40)), rtol=1e-6)


def test_rules_stand_in_files_of_their_names() -> None:
    assert len(RULES) == len(load_rules())
    assert all(isinstance(r, Rule) and r.phase in PHASES for r in RULES.values())
