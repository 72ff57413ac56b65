"""Custom operators in engines: C functions from sources, objects, archives and libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuvil
from cuvil.engine.front_door import compile_engine
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.options import Options
from tests.custom.acme import SOURCE, blend, built, model, sums

NET = """net (float[N, 3] x, float[N, 3] y) => (float[N, 3] z) {
  a = Relu(x)  b = com.acme.Blend<gain = 3.0>(a, y)  z = Neg(b) }"""
WAYS = ("source", "text", "o", "a", "so")


def where(way: str, folder: Path) -> dict[str, Any]:
    """The arguments of `native` for acme.c in one of its forms."""
    if way in ("source", "text"):
        return {"source": SOURCE if way == "source" else SOURCE.read_text()}
    return {"library" if way == "so" else "object": built(folder, way)}


def pair(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> list[np.ndarray]:
    return [(rng.standard_normal(shape) * 9).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("way", WAYS)
def test_c_code_runs_in_every_form_and_for_any_extent(
    way: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    blend(**where(way, tmp_path))
    engine = cuvil.compile(model(NET))
    for rows in (2, 7, 0):
        x, y = pair(rng, rows, 3)
        np.testing.assert_allclose(engine(x, y), -(np.maximum(x, 0) * 3 + y), rtol=1e-6)


def test_each_element_type_has_its_function(rng: np.random.Generator) -> None:
    blend(source=SOURCE)
    engine = cuvil.compile(
        model("""types (double[4] a, int32[4] b) => (double[4] c, int32[4] d) {
          c = com.acme.Blend(a, a)  d = com.acme.Blend<gain = 5.0>(b, b) }""")
    )
    a, b = rng.standard_normal(4), np.arange(4, dtype=np.int32)
    c, d = engine(a, b)
    np.testing.assert_array_equal(c, a * 3)
    np.testing.assert_array_equal(d, b * 6)


def test_optional_inputs_lists_and_several_outputs(rng: np.random.Generator) -> None:
    sums(source=SOURCE)
    engine = cuvil.compile(
        model("""sums (float[N, M] x, float[M] w) => (float[N] a, float[N] b, int64[P] i) {
          a, i = com.acme.Sums<edges = [-1.0, 1.0]>(x, w)
          b, j = com.acme.Sums<edges = [0.0, 9.0], ints = [7], flag = 0>(x) }""")
    )
    x, w = rng.standard_normal((5, 4)).astype(np.float32), np.ones(4, np.float32) / 3
    a, b, i = engine(x, w)
    np.testing.assert_allclose(a, (x * w * (abs(x) < 1)).sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b, 1000 + np.maximum(x, 0).sum(1), rtol=1e-6)
    assert i.tolist() == [1, 2, 3]


def test_any_number_of_inputs(rng: np.random.Generator) -> None:
    join = cuvil.custom_op("com.acme::Join", inputs=["weights: f32", "xs: f32..."], outputs=["f32"])
    join.shape(lambda weights, *xs: xs[0])
    join.native("acme_join", source=SOURCE)
    engine = cuvil.compile(
        model("""join (float[3] w, float[1] v, float[N, 4] a, float[N, 4] b) => (float[N, 4] y) {
          s = com.acme.Join(w, a, b, a)  t = Neg(s)  y = com.acme.Join(v, t) }""")
    )
    a, b = pair(rng, 3, 4)
    y = engine(np.array([1, 2, 3], np.float32), np.array([5], np.float32), a, b)
    np.testing.assert_allclose(y, -5 * (4 * a + 2 * b), rtol=1e-5, atol=1e-4)


def test_scalars_views_and_constants_come_as_dense_buffers(rng: np.random.Generator) -> None:
    blend(source=SOURCE)
    engine = cuvil.compile(
        model("""views (float[4, 6] x, float s) => (float[6, 4] t, float q, float[4, 2] c) {
          one = Constant<value = float {1.0}>()  q = com.acme.Blend(s, one)
          u = Transpose<perm = [1, 0]>(x)  t = com.acme.Blend(u, u)
          k = Constant<value = int64[1] {2}>()  e = Constant<value = int64[1] {4}>()
          h = Constant<value = int64[1] {1}>()  p = Slice(x, k, e, h)
          c = com.acme.Blend(p, p) }""")
    )
    x = rng.standard_normal((4, 6)).astype(np.float32)
    t, q, c = engine(x, np.array(4, np.float32))
    np.testing.assert_allclose(t, x.T * 3, rtol=1e-6)
    np.testing.assert_allclose(c, x[:, 2:4] * 3, rtol=1e-6)
    assert q == 9


def test_it_works_in_loops_and_branches(rng: np.random.Generator) -> None:
    blend(source=SOURCE)
    engine = cuvil.compile(
        model("""loops (float[N] x, int64 n) => (float[N] y) {
          yes = Constant<value = bool {1}>()
          y = Loop(n, yes, x)<body = body (int64 i, bool c, float[N] a) => (bool k, float[N] b)
            { k = Identity(c)  b = com.acme.Blend<gain = 0.5>(a, x) }> }""")
    )
    x = rng.standard_normal(5).astype(np.float32)
    expected = x
    for _ in range(3):
        expected = expected * np.float32(0.5) + x
    np.testing.assert_allclose(engine(x, np.array(3)), expected, rtol=1e-6)


def test_a_graph_built_in_python() -> None:
    operator = blend(source=SOURCE)
    graph = new_graph("made", {"x": TensorType.of((symbol("N"), 3), "f32")}, Pool())
    b = Builder(graph.block, graph.pool)
    x = graph.inputs[0]
    finish_graph(graph, {"z": b.neg(operator.emit(b, x, b.com_acme_Blend(x, x)))})
    ones = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(compile_engine(graph, Options())(ones), -5 * ones)


def test_a_status_fails_the_run_and_names_the_node() -> None:
    blend(source=SOURCE)
    engine = cuvil.compile(
        model("""net (float[N, 3] x) => (float[N, 3] z) {
          a = com.acme.Blend<mode = "fail">(x, x)  z = Neg(a) }""")
    )
    ones = np.ones((2, 3), np.float32)
    with pytest.raises(
        cuvil.RuntimeFailure, match=r"custom operator failed with status -3 at .*\ba"
    ):
        engine(ones)


def test_a_missing_library_names_file_function_and_operator(tmp_path: Path) -> None:
    blend(library=tmp_path / "libnone.so")
    with pytest.raises(cuvil.CompileError) as error:
        cuvil.compile(model(NET))
    said = str(error.value)
    assert all(w in said for w in (str(tmp_path / "libnone.so"), "acme_blend_f32", "acme::Blend"))
    assert "is not there" in said


@pytest.mark.parametrize("way", ["so", "a", "o", "text"])
def test_a_missing_function_is_told_with_its_declaration(way: str, tmp_path: Path) -> None:
    operator = blend()
    operator.remove()
    other = cuvil.custom_op("com.acme::Blend", inputs=["x: f32", "y: f32"], outputs=["f32"])
    other.shape(lambda x, y: x)
    other.native("acme_bland", **where(way, tmp_path))
    with pytest.raises(cuvil.CompileError, match=r"com\.acme::Blend: .*acme_bland") as error:
        cuvil.compile(model("net (float[3] x) => (z) { z = com.acme.Blend(x, x) }"))
    assert "must export\n  int32_t acme_bland(const float *x, const int64_t *x_dims" in str(
        error.value
    )


def test_what_is_no_library_and_what_does_not_compile(tmp_path: Path) -> None:
    operator = blend(source="int32_t acme_blend_f32(\n")
    with pytest.raises(cuvil.CompileError, match="cannot make acme_blend_f32 from its C source"):
        cuvil.compile(model(NET))
    operator.remove()
    (tmp_path / "libacme.so").write_text("nonsense")
    blend(library=tmp_path / "libacme.so")
    with pytest.raises(cuvil.Error, match=r"acme_blend_f32: not a little-endian ELF file"):
        cuvil.compile(model(NET))


def test_code_that_is_nowhere() -> None:
    blend()
    with pytest.raises(cuvil.CompileError, match="nothing says where function acme_blend_f32 is"):
        cuvil.compile(model(NET))


def test_two_operators_cannot_mean_different_functions_by_one_name() -> None:
    blend(source=SOURCE)
    other = cuvil.custom_op("com.acme::Other", inputs=["x: f32"], outputs=["f32"])
    other.shape(lambda x: x)
    other.native("acme_blend_f32", source=SOURCE)
    with pytest.raises(cuvil.OptionError, match="mean different functions by the name"):
        cuvil.compile(
            model("net (float[3] x) => (z) { a = com.acme.Blend(x, x)  z = com.acme.Other(a) }")
        )
