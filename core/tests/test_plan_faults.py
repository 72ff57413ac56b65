"""Plans that once computed something else than their graph, each as small as it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import cuvil.ops  # noqa: F401 - registers the primitives
from cuvil.ir.build import Builder
from cuvil.ir.dims import Dim, evaluate, symbol
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import run
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan

N = symbol("N")
Build = Callable[..., Any]


def check(shapes: Sequence[Sequence[Dim]], build: Build, env: Mapping[str, int] = {}) -> None:
    """The plan of a graph gives what the graph gives; build returns one value or several."""
    graph = new_graph("g", {f"x{i}": TensorType.of(s, "f32") for i, s in enumerate(shapes)}, Pool())
    built = build(Builder(graph.block, graph.pool), *graph.inputs)
    values = built if isinstance(built, tuple) else (built,)
    finish_graph(graph, {f"y{i}": v for i, v in enumerate(values)})
    rng = np.random.default_rng(0)
    feeds = {
        f"x{i}": rng.standard_normal([evaluate(d, env) for d in s]).astype(np.float32)
        for i, s in enumerate(shapes)
    }
    want = run(graph, feeds)
    for name, got in run_plan(make_plan(graph), feeds).items():
        np.testing.assert_allclose(got, want[name], rtol=1e-4, atol=1e-5)


def test_a_product_with_itself():
    """One buffer is read as it is and packed."""
    check([[2, 5, 4]], lambda b, x: b.contract(x, x, spec="amk,ank->amn"))


def test_a_product_that_is_scaled_by_its_packed_operand():
    check([[4, 4], [4, 4]], lambda b, x, w: b.mul(b.contract(x, w, spec="mk,kn->mn"), w))
    check([[4, 4], [4, 4]], lambda b, x, w: b.mul(b.contract(x, w, spec="mk,kn->mn"), x))


def test_a_product_by_a_single_number():
    """Numbers stand in kernels themselves, but not in templates."""
    check([[3, 4, 1]], lambda b, x: b.contract(x, b.const(np.float32([[2]])), spec="abk,nk->abn"))


def test_an_empty_axis_with_many_rows():
    check([[7, 0, 3]], lambda b, x: b.transpose(x, perm=(1, 0, 2)))


@pytest.mark.parametrize("rows", [1, 5])
def test_a_position_that_two_kernels_need(rows):
    """An op that is computed wherever it is read also looks at its axis there."""

    def build(b: Builder, x: Any) -> Any:
        place = b.cast(b.iota(dims=(N, 3), axis=0, dtype="i32"), to="f32")
        return b.add(b.mul(place, b.scalar(2, "f32")), x), b.contract(
            place, b.const(np.eye(3, dtype=np.float32)), spec="ab,bc->ac"
        )

    check([[N, 3]], build, {"N": rows})


def test_a_position_behind_a_product():
    def build(b: Builder, x: Any) -> Any:
        w = b.const(np.arange(12, dtype=np.float32).reshape(3, 4))
        place = b.iota(dims=(5, 4), axis=1, dtype="f32")
        return b.add(b.contract(x, w, spec="ab,bc->ac"), place), b.neg(place)

    check([[5, 3]], build)


def test_a_dense_writer_inside_a_concatenation():
    """What a kernel writes by its own offsets is not placed inside another tensor."""

    def build(b: Builder, x: Any, y: Any) -> Any:
        index = b.const(np.zeros((3, 1), np.int64))
        new = b.const(np.float32([[1], [2], [3]]))
        written = b.scatter_elements(x, index, new, axis=1)
        return b.concat(y, written, y, axis=1)

    check([[4, 1], [4, 3]], build)


@pytest.mark.parametrize("extent", [0, 1, 4])
def test_a_pad_of_what_may_be_empty(extent):
    def build(b: Builder, x: Any) -> Any:
        return b.pad(x, b.scalar(7, "f32"), low=(1, 0), high=(2, 1))

    check([[N, 3]], build, {"N": extent})


@pytest.mark.parametrize("extent", [0, 2])
def test_no_view_begins_behind_its_buffer(extent):
    """No rows inside a border of one row and a column: where they would begin is behind its end."""

    def build(b: Builder, x: Any) -> Any:
        return b.pad(b.erf(x), b.scalar(7, "f32"), low=(1, 1), high=(0, 0))

    check([[N, 3]], build, {"N": extent})


def test_what_is_read_twice_through_views_level_after_level_is_stored():
    """Inlined at every index, 20 levels of it would be a million copies."""

    def build(b: Builder, x: Any) -> Any:
        for n in range(39, 19, -1):
            left = b.slice(x, starts=[0], steps=[1], dims=[n])
            x = b.add(left, b.slice(x, starts=[1], steps=[1], dims=[n]))
        return x

    check([[40]], build)
