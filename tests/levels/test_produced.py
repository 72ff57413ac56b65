"""Extents that a run finds, at every level: interpreter, plan on numpy, native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import f32, i64, model

from cuvil.engine.front_door import compile_engine
from cuvil.errors import ShapeMismatchError
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify_memory import verify_memory


def run_levels(source: onnx.ModelProto, *calls: list[Any]) -> list[list[np.ndarray]]:
    """Outputs of every call by native code, after the same was found at all other levels."""
    graph = import_model(source)
    graph.module.verify()
    plan = make_plan(graph)
    verify_memory(plan)
    engine = compile_engine(graph, Options())
    found = []
    for inputs in calls:
        feeds = dict(zip(graph.input_names, inputs, strict=True))
        native = dict(zip(graph.output_names, engine.run(None, feeds), strict=True))
        for other in (interpreter.run(graph, feeds), run_plan(plan, feeds)):
            for name, value in other.items():
                np.testing.assert_allclose(native[name], value, rtol=1e-6, err_msg=name)
                assert native[name].dtype == value.dtype
        found.append(list(native.values()))
    return found


def test_non_zero_of_any_shape():
    source = model("m (float[A,B] x) => (int64[2,K] y) { y = NonZero(x) }")
    some, none = f32([[1, 0, 2], [0, 0, 3]]), np.zeros((2, 2), np.float32)
    first, second, empty = run_levels(source, [some], [none], [np.zeros((0, 3), np.float32)])
    assert first[0].tolist() == [[0, 0, 1], [0, 2, 2]]
    assert second[0].shape == empty[0].shape == (2, 0)


@pytest.mark.parametrize("axis, expected", [("<axis=1>", [[1, 3], [4, 6]]), ("", [1, 3])])
def test_what_follows_uses_the_extent(axis, expected):
    rank = 2 if axis else 1
    out = "A,K" if rank == 2 else "K"
    source = model(
        f"m (float[A,B] x, bool[B] c) => (float[{out}] y)"
        f" {{ z = Compress{axis}(x, c)  two = Add(z, z)  y = Sub(two, z) }}"
    )
    x, c = f32([[1, 2, 3], [4, 5, 6]]), np.array([True, False, True])
    assert run_levels(source, [x, c])[0][0].tolist() == expected


def test_two_outputs_share_one_extent():
    source = model("m (bool[A] c) => (int64[K] y, int64 n) { p = NonZero(c) y = Squeeze(p) "
                   "n = Size(y) }")  # fmt: skip
    y, n = run_levels(source, [np.array([0, 1, 1], bool)])[0]
    assert y.tolist() == [1, 2] and n == 2
    assert i64(n).shape == ()


@pytest.mark.parametrize("shape", [[2, -1], [0, -1], [4, 6], [-1, 1]])
def test_reshape_to_a_shape_that_is_an_input(shape):
    source = model("m (float[2,3,4] x, int64[2] s) => (float[K,L] y) { y = Reshape(x, s) }")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    expected = x.reshape([2 if n == 0 else n for n in shape])
    assert run_levels(source, [x, i64(shape)])[0][0].shape == expected.shape


@pytest.mark.parametrize("shape", [[5, -1], [3, 3], [-1, -1], [-2, 4], [2**62, 2**62]])
def test_an_impossible_shape_is_an_error(shape):
    source = model("m (float[2,3,4] x, int64[2] s) => (float[K,L] y) { y = Reshape(x, s) }")
    engine = compile_engine(import_model(source), Options())
    with pytest.raises(ShapeMismatchError, match="at"):
        engine.run(None, {"x": np.zeros((2, 3, 4), np.float32), "s": i64(shape)})


def test_slices_by_data_are_numpys():
    header = "m (float[A] x, int64[1] a, int64[1] b, int64[1] s) => (float[K] y)"
    source = model(header + " { y = Slice(x, a, b, , s) }")
    x, low = np.arange(10, dtype=np.float32), -(2**63)
    bounds = [
        (9, 0, -1), (9, 2, -1), (9, 0, -3), (-1, low, -1), (-1, -(2**31), -2), (0, 5, -1),
        (20, 3, -1), (2, 7, 2), (-3, 2**62, 1), (0, 0, 1),
    ]  # fmt: skip
    results = run_levels(source, *([x, i64([a]), i64([b]), i64([s])] for a, b, s in bounds))
    for (a, b, s), (y,) in zip(bounds, results, strict=True):
        np.testing.assert_array_equal(y, x[a : None if b == low else b : s])


def test_numbers_of_other_operators_may_be_data():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    cases = [
        ("float[2,3] x, int64[2] n", "Tile(x, n)", i64([2, 3]), np.tile(x, (2, 3))),
        ("float[2,3] x, int64[3] n", "Expand(x, n)", i64([2, 1, 3]), np.stack([x, x])),
        ("float[2,3] x, int64[4] n", "Pad(x, n)", i64([0, 1, 1, -2]),
         np.pad(x, ((0, 1), (1, 0)))[:, :2]),
        ("float[2,3] x, int64[2] n", "ConstantOfShape(n)", i64([1, 2]), np.zeros((1, 2))),
    ]  # fmt: skip
    for inputs, call, numbers, expected in cases:
        dims = ",".join("KLMN"[: expected.ndim])
        source = model(f"m ({inputs}) => (float[{dims}] y) {{ y = {call} }}")
        np.testing.assert_array_equal(run_levels(source, [x, numbers])[0][0], expected)
    source = model("m (float s, float l, float d) => (float[K] y) { y = Range(s, l, d) }")
    found = run_levels(source, [f32(0), f32(5), f32(1.5)], [f32(5), f32(0), f32(-1)])
    assert [y.tolist() for (y,) in found] == [[0, 1.5, 3, 4.5], [5, 4, 3, 2, 1]]


GROW = """{ y = Loop(n, c, x) <body = b (int64 i, bool ci, float[M] v) => (bool co, float[L] w) {
  co = Identity(ci)  one = Constant<value = float[1] {1.0}>()  w = Concat<axis=0>(v, one) }> }"""


def test_what_a_loop_carries_may_grow():
    source = model(f"m (int64 n, bool c, float[A] x) => (float[K] y) {GROW}")
    true = np.array(True)
    calls = [[i64(n), true, f32([5, 6])] for n in (0, 1, 3)]
    found = run_levels(source, *calls)
    assert [y.tolist() for (y,) in found] == [[5, 6], [5, 6, 1], [5, 6, 1, 1, 1]]


def test_growth_of_a_known_loop_has_a_bound():
    fixed = GROW.replace("{ y", "{ n = Constant<value = int64 {4}>() "
                         "c = Constant<value = bool {1}>() y", 1)  # fmt: skip
    plan = make_plan(import_model(model(f"m (float[A] x) => (float[K] y) {fixed}")))
    (extent,) = plan.outputs[0].type.dims
    assert str(plan.most(extent)) == "A + 4"


@pytest.mark.parametrize("limit, steps", [(20, 5), (1.5, 1)])
def test_a_loop_without_a_count_stacks_what_it_gives(limit, steps):
    source = model(
        """m (float s, float lim) => (float y, float[K] z, int64[K] it) {
        c = Constant<value = bool {1}>()
        y, z, it = Loop(, c, s) <body = b (int64 i, bool ci, float v)
          => (bool co, float w, float q, int64 ii) {
            two = Constant<value = float {2.0}>()  w = Mul(v, two)  q = Identity(w)
            ii = Identity(i)  co = Less(w, lim) }> }"""
    )
    y, z, numbers = run_levels(source, [f32(1), f32(limit)])[0]
    assert z.tolist() == [2.0 ** (k + 1) for k in range(steps)] and y == z[-1]
    assert numbers.tolist() == list(range(steps))


def test_branches_may_differ_in_extents():
    source = model(
        """m (bool c, float[A] x, int64[1] n) => (float[K] y) {
        w = If(c) <then_branch = t () => (float[A] a) { a = Neg(x) },
          else_branch = f () => (float[L] b) { v = Constant<value = float[1] {7.0}>()
            b = Expand(v, n) }>  y = Neg(w) }"""
    )
    x = f32([1, 2, 3])
    found = run_levels(source, *([np.array(c), x, i64([2])] for c in (True, False)))
    assert [y.tolist() for (y,) in found] == [[1, 2, 3], [-7, -7]]


def test_distinct_elements_and_boxes_that_remain():
    source = model("m (float[A] x) => (float[K] y, int64[K] i, int64[A] v, int64[K] n) "
                   "{ y, i, v, n = Unique(x) }")  # fmt: skip
    y, first, inverse, counts = run_levels(source, [f32([2, 1, 1, 3, 2])])[0]
    assert (y.tolist(), first.tolist()) == ([1, 2, 3], [1, 0, 3])
    assert (inverse.tolist(), counts.tolist()) == ([1, 0, 0, 2, 1], [2, 2, 1])
    boxes = f32([[[0, 0, 1, 1], [0, 0, 0.9, 0.9], [0, 10, 1, 11]]] * 2)
    scores = f32([[[0.9, 0.8, 0.7]], [[0.7, 0.8, 0.9]]])
    source = model("m (float[B,N,4] b, float[B,C,N] s, int64 m, float t) => (int64[K,3] y) "
                   "{ y = NonMaxSuppression(b, s, m, t) }")  # fmt: skip
    many, none = run_levels(source, *([boxes, scores, i64(n), f32(0.5)] for n in (10, 0)))
    assert many[0].tolist() == [[0, 0, 0], [0, 0, 2], [1, 0, 2], [1, 0, 1]]
    assert none[0].shape == (0, 3)


def test_stacked_extents_that_the_body_finds_must_agree():
    source = model(
        """m (bool[3,A] x) => (int64[3,1,K] y) {
        n = Constant<value = int64 {3}>()  c = Constant<value = bool {1}>()
        y = Loop(n, c) <body = b (int64 i, bool ci) => (bool co, int64[1,L] p) {
            co = Identity(ci)  row = Gather(x, i)  p = NonZero(row) }> }"""
    )
    x = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], bool)
    assert run_levels(source, [x])[0][0].tolist() == [[[0, 2]], [[0, 1]], [[1, 2]]]
    engine = compile_engine(import_model(source), Options())
    x[1, 2] = True
    with pytest.raises(ShapeMismatchError, match="must satisfy"):
        engine.run(None, {"x": x})


def test_parts_must_add_up():
    source = model("m (float[A] x, int64[2] s) => (float[K] y, float[L] z) { y, z = Split(x, s) }")
    x = np.arange(5, dtype=np.float32)
    y, z = run_levels(source, [x, i64([2, 3])])[0]
    assert (y.tolist(), z.tolist()) == ([0, 1], [2, 3, 4])
    with pytest.raises(ShapeMismatchError):
        compile_engine(import_model(source), Options()).run(None, {"x": x, "s": i64([2, 2])})


def test_an_unbounded_output_may_have_no_elements():
    source = model("m (float[2] x, int64[2] n) => (float[K,L,0] y) {"
                   " e = Constant<value = float[0] {}>()  s = Concat<axis=0>(n, z)"
                   " z = Constant<value = int64[1] {0}>()  y = Expand(e, s) }")  # fmt: skip
    (y,) = run_levels(source, [f32([1, 2]), i64([3, 4])])[0]
    assert y.shape == (3, 4, 0)
