"""From the attention op to its template: what the plan computes, where it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_check import feeds_of, same_numbers

import cuvil.ops
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import Plan, make_plan
from cuvil.rewrite.engine import run_phases
from cuvil.rewrite.rule import case

assert cuvil.ops is not None
HEADS = "[B, S, 2, 8] f32"
SPEC = "ambk,anbk,anbe->ambe"


def planned(build: Callable[..., Any], **inputs: str) -> tuple[Graph, Plan]:
    graph = case(build, **inputs).graph()
    return graph, make_plan(graph, "model")


def check(graph: Graph, plan: Plan) -> None:
    feeds = feeds_of(graph)
    same_numbers(run_plan(plan, feeds), run(graph, feeds), 1e-5)


def kinds(plan: Plan) -> list[str]:
    """What each kernel is called after its number."""
    return [name.partition("_")[2] or name for name in plan.kernels]


def test_heads_in_any_order_are_one_kernel() -> None:
    graph, plan = planned(
        lambda b, q, k, v: b.attention(q, k, v, scale=0.5, spec=SPEC), q=HEADS, k=HEADS, v=HEADS
    )
    assert kinds(plan) == ["attention"]
    check(graph, plan)


@pytest.mark.parametrize(
    "mask", ["[1, 1, 1, S] f32", "[B, 1, 1, S] bool", "[S, 1] f32", "[] f32", "[B, 2, S, 1] bool"]
)
def test_masks(mask: str) -> None:
    graph, plan = planned(
        lambda b, q, k, v, m: b.attention(q, k, v, m, scale=0.5, fill=-3.0, causal=True),
        q="[B, 2, S, 8] f32", k="[B, 1, S, 8] f32", v="[2, S, 4] f32", mask=mask,
    )  # fmt: skip
    assert kinds(plan) == ["attention"]
    check(graph, plan)


def test_slices_are_read_in_place_and_what_follows_is_an_epilogue() -> None:
    def build(b: Any, x: Any, rest: Any) -> Any:
        dims = tensor_type(rest).dims
        parts = [b.slice(x, starts=(0, 0, i, 0), steps=(1,) * 4, dims=dims) for i in (0, 2, 4)]
        return b.relu(b.add(b.attention(*parts, scale=0.5, spec=SPEC), rest))

    graph, plan = planned(build, x="[B, S, 6, 8] f32", rest=HEADS)
    assert kinds(plan) == ["attention"]
    check(graph, plan)


def test_heads_computed_together_are_read_where_they_lie() -> None:
    def build(b: Any, x: Any) -> Any:
        batch, steps, _ = tensor_type(x).dims
        dims = batch, steps, 16
        parts = [b.slice(x, starts=(0, 0, i), steps=(1,) * 3, dims=dims) for i in (0, 16, 32)]
        q, k, v = (b.reshape(part, dims=(batch, steps, 2, 8)) for part in parts)
        scores = b.contract(q, k, spec="ambk,anbk->abmn")
        return b.contract(b.softmax(scores, axis=3), v, spec="abmn,anbe->ambe")

    graph = case(build, x="[B, S, 48] f32").graph()
    feeds = feeds_of(graph)
    before = run(graph, feeds)
    run_phases(graph)
    plan = make_plan(graph, "model")
    assert kinds(plan) == ["attention"]
    same_numbers(run_plan(plan, feeds), before, 1e-5)


@pytest.mark.parametrize(
    ("v", "spec"), [("[B, 2, 4, S] f32", "abmk,abnk,aben->abme"), ("[B, 2, S, D] f32", "")]
)
def test_other_forms_keep_their_own_loops(v: str, spec: str) -> None:
    same = "[B, 2, S, 8] f32"
    graph, plan = planned(
        lambda b, q, k, v: b.attention(q, k, v, scale=0.5, spec=spec), q=same, k=same, v=v
    )
    check(graph, plan)


def test_a_causal_mask_given_as_a_constant() -> None:
    def build(b: Any, q: Any, k: Any, v: Any) -> Any:
        mask = b.const(np.where(np.tri(6, dtype=bool), 0, -np.inf).astype("f4"))
        scores = b.add(b.contract(q, k, spec="hmk,hnk->hmn"), mask)
        return b.contract(b.softmax(scores, axis=2), v, spec="hmn,hne->hme")

    same = "[2, 6, 8] f32"
    graph = case(build, q=same, k=same, v=same).graph()
    feeds = feeds_of(graph)
    before = run(graph, feeds)
    run_phases(graph)
    plan = make_plan(graph, "model")
    assert kinds(plan) == ["attention"]
    same_numbers(run_plan(plan, feeds), before, 1e-5)
