"""The attention generator against its meaning in numpy, for every width of vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contraction_check import BASE, FMA16, TARGETS, guarded

from cuvil.codegen.attention import (
    AttentionChoice,
    AttentionSpec,
    BatchDim,
    Keys,
    Rows,
    alternatives,
    emit_attention,
    scratch_bytes,
    task_count,
)
from cuvil.codegen.contraction import Slot
from cuvil.codegen.contraction.harness import HostKernel, new_module
from cuvil.codegen.facts import TargetFacts

Array = np.ndarray[Any, Any]
BY_COST = AttentionChoice()
RNG = np.random.default_rng(3)


def rand(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def inputs(b: int, h: int, m: int, n: int, d: int, e: int) -> tuple[Array, Array, Array]:
    """q, k and v as [batch, position, head, element]."""
    return rand(b, m, h, d), rand(b, n, h, d), rand(b, n, h, e)


def meaning(
    q: Array, k: Array, v: Array, scale: float, mask: Array | None, fill: float, causal: bool
) -> Array:
    scores = np.einsum("bmhd,bnhd->bhmn", q.astype("f8"), k) * scale
    if mask is not None:
        scores = np.where(mask, scores, fill) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return np.einsum("bhmn,bnhe->bmhe", e / e.sum(-1, keepdims=True), v)


def turned(mask: Array | None) -> tuple[Array, list[int], int]:
    """A mask that broadcasts to [B, H, M, N] as the kernel reads it, queries last; its strides of
    batch, head and key; whether it has a row per query."""
    if mask is None:
        return np.zeros(1, np.float32), [0, 0, 0], 0
    moved = np.ascontiguousarray(mask.swapaxes(-1, -2))
    steps = [
        0 if n == 1 else s // mask.itemsize for n, s in zip(moved.shape, moved.strides, strict=True)
    ]
    return moved, steps[:3], int(mask.shape[-2] > 1)


def run(
    q: Array,
    k: Array,
    v: Array,
    facts: TargetFacts,
    mask: Array | None = None,
    scale: float = 0.5,
    fill: float = -1e9,
    causal: bool = False,
    dynamic: bool = False,
    epilogue: Any = None,
    choice: AttentionChoice = BY_COST,
) -> Array:
    (b, m, h, d), (_, n, _, e) = q.shape, v.shape
    data, steps, per_query = turned(mask)
    known = [b, h, m, n]
    sizes: list[Any] = [Slot(i) for i in range(4)] if dynamic else list(known)
    spec = AttentionSpec(
        (
            BatchDim(sizes[0], m * h * d, n * h * d, n * h * e, steps[0], m * h * e),
            BatchDim(sizes[1], d, d, e, steps[1], e),
        ),
        Rows(sizes[2], h * d, per_query, h * e),
        Keys(sizes[3], h * d, h * e, steps[2]),
        d, e, scale=scale, fill=fill, causal=causal,
        mask="" if mask is None else "select" if mask.dtype == bool else "add", choice=choice,
    )  # fmt: skip
    module = new_module(facts)
    emit_attention(module, "kernel", spec, facts, *([epilogue] if epilogue else []))
    kernel = HostKernel(module, "kernel", facts, opt=1)
    buffers = [guarded(x) for x in (q, k, v, np.full((b, m, h, e), 7, np.float32), data)]
    call = kernel.bind(buffers, known, scratch_bytes(spec, facts))
    for task in reversed(range(task_count(spec, facts, known))):
        call(task, task + 1)
    return buffers[3]


def check(
    q: Array, k: Array, v: Array, facts: TargetFacts, dynamic: bool = False, **more: Any
) -> None:
    found = run(q, k, v, facts, dynamic=dynamic, **more)
    given = {"mask": None, "scale": 0.5, "fill": -1e9, "causal": False} | more
    want = meaning(q, k, v, **given)
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5)


SHAPES = {
    "one query": (1, 2, 1, 9, 32, 32),
    "one key": (2, 1, 5, 1, 32, 32),
    "short": (1, 3, 7, 7, 8, 24),
    "bert": (1, 2, 128, 128, 64, 64),
    "vit": (1, 1, 197, 197, 64, 64),
    "odd widths": (2, 2, 33, 18, 20, 40),
    "tiny": (1, 1, 3, 4, 1, 1),
    "no queries": (1, 2, 0, 4, 8, 8),
    "no batch": (0, 2, 5, 4, 8, 8),
    "no keys": (1, 2, 5, 0, 8, 8),
}


RUN_TIME = ["one query", "short", "vit", "odd widths", "no queries", "no keys"]
CASES = [*((name, False) for name in SHAPES), *((name, True) for name in RUN_TIME)]


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize(("name", "dynamic"), CASES)
def test_shapes(name: str, dynamic: bool, facts: TargetFacts) -> None:
    q, k, v = inputs(*SHAPES[name])
    if k.shape[1] == 0:  # sums of nothing, as a product over no keys is
        np.testing.assert_array_equal(run(q, k, v, facts, dynamic=dynamic), 0)
        return
    check(q, k, v, facts, dynamic)


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("queries", [37, Slot(0)], ids=["static", "run-time"])
def test_every_cut_gives_the_same_result(queries: Any, facts: TargetFacts) -> None:
    spec = AttentionSpec((), Rows(queries, 24, 0, 40), Keys(90, 24, 40, 0), 24, 40)
    choices = alternatives(spec, facts)
    assert len(set(choices)) == len(choices) > 1
    q, k, v = inputs(1, 1, 37, 90, 24, 40)
    want = meaning(q, k, v, 0.5, None, 0, False)
    for choice in choices:
        found = run(q, k, v, facts, dynamic=not isinstance(queries, int), choice=choice)
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "run-time"])
def test_many_keys_are_summed_block_by_block(dynamic: bool, facts: TargetFacts) -> None:
    small = replace(facts, l1_bytes=4096)
    q, k, v = inputs(1, 2, 21, 300, 16, 16)
    k[:, 200:] *= 3  # the greatest score of many rows comes late
    check(q, k, v, small, dynamic)
    late = np.zeros((1, 1, 1, 300), bool)
    late[..., 250:] = True  # the first blocks are hidden
    check(q, k, v, small, dynamic, mask=late, fill=-np.inf)
    check(q, k, v, small, dynamic, causal=True)


MASKS = [(1, 1, 19, 11), (2, 1, 1, 11), (1, 3, 19, 11), (2, 3, 19, 1)]


@pytest.mark.parametrize("facts", TARGETS)
@pytest.mark.parametrize("kind", ["float", "bool"])
def test_masks_broadcast(kind: str, facts: TargetFacts) -> None:
    q, k, v = inputs(2, 3, 19, 11, 8, 16)
    for shape in MASKS:
        mask = rand(*shape) if kind == "float" else rand(*shape) > 0
        check(q, k, v, facts, mask=mask)


@pytest.mark.parametrize("facts", TARGETS)
def test_causal(facts: TargetFacts) -> None:
    for m, n in ((40, 40), (5, 37), (37, 5)):
        check(*inputs(1, 2, m, n, 8, 8), facts, n > m, causal=True)
    check(*inputs(1, 2, 40, 40, 8, 8), facts, True, causal=True, mask=rand(1, 1, 40, 40))


def test_masked_rows_are_as_in_the_unfused_graph() -> None:
    """-inf alone gives NaN in that row and nowhere else; a large finite mask gives the mean."""
    q, k, v = inputs(1, 2, 18, 9, 8, 8)
    mask = np.zeros((1, 1, 18, 9), np.float32)
    mask[..., 3, :] = -np.inf
    found = run(q, k, v, BASE, mask=mask)
    assert np.isnan(found[:, 3]).all()
    others = np.arange(18) != 3
    np.testing.assert_array_equal(found[:, others], run(q, k, v, BASE)[:, others])
    lowest = np.full((1, 1, 1, 9), np.finfo(np.float32).min, np.float32)
    mean = np.broadcast_to(v.mean(1, keepdims=True), found.shape)
    np.testing.assert_allclose(run(q, k, v, BASE, mask=lowest), mean, rtol=1e-4, atol=1e-6)


def test_large_scores_and_special_values() -> None:
    q, k, v = inputs(1, 1, 6, 40, 8, 8)
    check(q * 1e3, k * 1e3, v, BASE, scale=1.0)
    q[0, 2, 0, 1], v[0, 5, 0, 3] = np.nan, np.inf
    found = run(q, k, v, BASE)
    assert np.isnan(found[0, 2]).all()
    assert np.isposinf(found[0, [0, 1, 3, 4, 5], 0, 3]).all()
    assert np.isfinite(found[0, 0, 0, [0, 1, 2, 4]]).all()


@pytest.mark.parametrize("facts", TARGETS)
def test_the_epilogue_sees_query_and_column(facts: TargetFacts) -> None:
    def epilogue(scope: Any, acc: Any) -> Any:
        return scope.builder.fadd(acc, scope.load(1, "f32", scope.c_offset))

    q, k, v = inputs(1, 2, 9, 9, 12, 12)
    found = run(q, k, v, facts, epilogue=epilogue)
    np.testing.assert_allclose(found - k, run(q, k, v, facts), rtol=1e-4, atol=1e-5)


def test_tasks_are_many_where_there_is_work() -> None:
    sizes = (1, 12, 128, 128)
    spec = AttentionSpec(
        (BatchDim(12, 64, 64, 64, 0, 64),), Rows(128, 768, 0, 768), Keys(128, 768, 768, 0), 64, 64
    )
    assert 8 <= task_count(spec, FMA16, sizes) <= 64
