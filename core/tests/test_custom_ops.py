"""Custom operators without any target: what they compute, how they are built and planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from custom_examples import X, Y, blend, imported, model, planned

from cuvil.errors import OptionError, RuntimeFailure, SignatureError
from cuvil.frontends.onnx import import_model
from cuvil.ir.attrs import Attr
from cuvil.ir.build import Builder
from cuvil.ir.dims import symbol
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.text import parse_ir, print_ir
from cuvil.ir.types import TensorType
from cuvil.ops import interpreter
from cuvil.ops.custom import custom_op
from cuvil.ops.custom.registry import OPERATORS
from cuvil.plan.interpreter import run_plan
from cuvil.rewrite.engine import run_phases


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Takes away what a test declares."""
    yield
    for operator in list(OPERATORS.values()):
        operator.remove()


# -- what it computes ------------------------------------------------------------------------------
def test_the_numpy_meaning_serves_graphs_and_plans() -> None:
    blend()
    graph = imported("a = Relu(x)  b = com.acme.Blend<gain = 3.0>(a, y)  z = Neg(b)")
    expected = -(np.maximum(X, 0) * 3 + Y)
    np.testing.assert_array_equal(interpreter.run(graph, {"x": X, "y": Y})["z"], expected)
    np.testing.assert_array_equal(run_plan(planned(graph), {"x": X, "y": Y})["z"], expected)


def test_neighbours_fuse_and_the_operator_stands_alone() -> None:
    blend()
    graph = imported(
        "a = Relu(x)  b = Neg(a)  c = com.acme.Blend(b, y)  d = Exp(c)  e = Add(d, c)  z = Abs(e)"
    )
    names = [name.partition("_")[2] for name in planned(graph).kernels]
    assert names == ["neg", "com_acme_Blend", "abs"]


def test_operands_and_results_have_dense_buffers_of_their_own() -> None:
    """Slices, concatenations, scalars and reshapes around it are stored as they are."""
    blend()
    graph = import_model(
        model("""g (float[3, 3] x, int64[1] one, int64[1] two, int64[2] t) => (z) {
          c = Constant<value = float[3] {1.0, 2.0, 3.0}>()  w = Expand(c, t)
          s = Slice(x, one, two)  b = com.acme.Blend(s, w)  r = com.acme.Blend(b, b)
          z = Concat<axis = 0>(r, b, s) }"""),
        values={
            "one": np.array([1]), "two": np.array([3]), "t": np.array([2, 3]),
        },
    )  # fmt: skip
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    b = x[1:] * 2 + np.array([1, 2, 3], np.float32)
    got = run_plan(planned(graph), {"x": x})["z"]
    np.testing.assert_array_equal(got, np.concatenate([b * 2 + b, b, x[1:]]))


def test_a_plan_has_a_text_that_parses_back() -> None:
    blend()
    graph = imported("z = com.acme.Blend<gain = 1.5>(x, y)")
    assert print_ir(parse_ir(print_ir(graph.module))) == print_ir(graph.module)
    (kernel,) = planned(graph).kernels.values()
    assert print_ir(parse_ir(print_ir(kernel)).body.block.first_op) == print_ir(kernel)
    assert 'symbol = "acme_blend_f32"' in print_ir(kernel)


def test_optional_inputs_several_outputs_and_every_kind_of_attribute() -> None:
    kinds = {
        "n": int, "f": 0.5, "flag": False, "mode": "fast", "axes": (1, 2), "rates": list[float],
        "names": Attr("strs", ()),
    }  # fmt: skip
    split = custom_op(
        "com.acme::Split", inputs=["x: f32", "lo: f32?", "hi: f32?"], outputs=["T0: f32", "i64"],
        attributes=kinds,
    )  # fmt: skip
    seen: dict[str, Any] = {}

    @split.shape
    def extents(x: Any, lo: Any, hi: Any, **attributes: Any) -> Any:
        return [(*x, 2), (len(attributes["axes"]),)]

    @split.reference
    def meaning(x: Any, lo: Any, hi: Any, **attributes: Any) -> Any:
        seen.update(attributes, lo=lo, hi=hi)
        return np.stack([x, x * hi], -1), np.asarray(attributes["axes"], np.int64)

    graph = imported(
        'z, i = com.acme.Split<n = 7, flag = 1, rates = [1.0, 2.0], names = ["a", "b"]>(x, , y)',
        out="z, i",
    )
    found = interpreter.run(graph, {"x": X, "y": Y})
    np.testing.assert_array_equal(found["z"], np.stack([X, X * Y], -1))
    assert found["i"].tolist() == [1, 2] and seen.pop("lo") is None and seen.pop("hi") is not None
    assert seen == {
        "n": 7, "f": 0.5, "flag": True, "mode": "fast", "axes": (1, 2), "rates": (1.0, 2.0),
        "names": ("a", "b"),
    }  # fmt: skip


def test_a_last_input_may_stand_for_several() -> None:
    join = custom_op("com.acme::Join", inputs=["scale: f32", "xs: T..."], outputs=["T"])
    join.shape(lambda scale, *xs: xs[0])
    join.reference(lambda scale, *xs: np.sum(xs, axis=0) * scale)
    join.native("acme_join_{T}")
    assert str(join.signature) == "com.acme::Join(scale: f32, xs: T...) -> (y0: T)"
    assert join.prototype(T="f32") == (
        "int32_t acme_join_f32(const float *scale, const int64_t *scale_dims, int64_t scale_rank, "
        "const float *const *xs, const int64_t *const *xs_dims, const int64_t *xs_ranks, "
        "int64_t xs_count, float *y0, const int64_t *y0_dims, int64_t y0_rank);"
    )
    graph = imported(
        "k = Constant<value = float {2.0}>()  a = com.acme.Join(k, x, y, x)  "
        "b = com.acme.Join(k, a)  z = Neg(b)"
    )
    found = run_plan(planned(graph), {"x": X, "y": Y})["z"]
    np.testing.assert_allclose(found, -4 * (X + Y + X), rtol=1e-6)
    with pytest.raises(SignatureError, match="1 input, not 2 or more"):
        imported("z = com.acme.Join(x)")
    with pytest.raises(SignatureError, match=r"input 2 \(xs\) is f64, not f32, as T is f32"):
        imported("d = Cast<to = 11>(x)  z = com.acme.Join(x, y, d)")


def test_python_builds_it_too() -> None:
    operator = blend()
    kind = TensorType.of((symbol("N"), 3), "f32")
    graph = new_graph("made", {"x": kind, "y": kind}, Pool())
    b = Builder(graph.block, graph.pool)
    first = operator.emit(b, *graph.inputs, gain=3)
    second = b.com_acme_Blend(first, b.neg(first), gain=1.0)
    finish_graph(graph, {"z": second})
    np.testing.assert_array_equal(run_plan(planned(graph), {"x": X, "y": Y})["z"], 0 * X)
    with pytest.raises(SignatureError, match="there is no attribute pain"):
        operator.emit(b, *graph.inputs, pain=3)
    with pytest.raises(SignatureError, match=r"(?s)is i64, not f32, as T is f32.*used: .*i64 \[\]"):
        operator.emit(b, first, b.const(np.int64(1)))


# -- compositions ----------------------------------------------------------------------------------
def test_a_composition_is_primitives_and_fuses() -> None:
    operator = custom_op(
        "com.acme::Gate", inputs=["x: T", "y: T?"], outputs=["T"], attributes={"sharp": 1.0}
    )

    @operator.compose
    def build(b: Builder, x: Any, y: Any, *, sharp: float) -> Any:
        gate = b.sigmoid(b.mul(x, b.scalar(sharp, x)))
        return b.mul(x, gate) if y is None else b.mul(y, gate)

    graph = imported("a = Relu(x)  b = com.acme.Gate<sharp = 2.0>(a, y)  z = com.acme.Gate(b)")
    plan = planned(graph)
    assert len(plan.kernels) == 1
    a = np.maximum(X, 0)
    b = Y / (1 + np.exp(-2 * a))
    np.testing.assert_allclose(
        run_plan(plan, {"x": X, "y": Y})["z"], b / (1 + np.exp(-b)), rtol=1e-6
    )
    made = new_graph("made", {"x": TensorType.of((2, 3), "f32")}, Pool())
    builder = Builder(made.block, made.pool)
    finish_graph(made, {"z": operator.emit(builder, made.inputs[0])})
    assert "sigmoid" in print_ir(made.module)


BODY = """<opset_import: ["" : 18], domain: "com.acme"> Scaled <axis: int> (x, y) => (z)
{ a = Softmax<axis: int = @axis>(x)  z = Mul(a, y) }"""


@pytest.mark.parametrize("form", [BODY, onnx.parser.parse_function(BODY)])
def test_a_composition_may_be_the_body_of_an_onnx_function(form: Any) -> None:
    operator = custom_op(
        "com.acme::Scaled", inputs=["x: T", "y: T"], outputs=["T"], attributes={"axis": -1}
    )
    operator.compose(form)
    graph = imported("z = com.acme.Scaled<axis = 0>(x, y)")
    e = np.exp(X - X.max(0))
    np.testing.assert_allclose(
        interpreter.run(graph, {"x": X, "y": Y})["z"], e / e.sum(0) * Y, rtol=1e-6
    )


def test_a_composition_must_give_what_is_declared() -> None:
    operator = custom_op("com.acme::Half", inputs=["x: f32"], outputs=["f16"])
    operator.compose(lambda b, x: b.neg(x))
    with pytest.raises(SignatureError) as error:
        imported("z = com.acme.Half(x)")
    first, declared, _ = str(error.value).split("\n")
    assert "its composition gives output 0 as [N, 3] f32, but f16 is declared" in first
    assert declared == "  declared: com.acme::Half(x: f32) -> (y0: f16)"
    operator.compose(lambda b, x: (x, x))
    with pytest.raises(SignatureError, match="its composition gives 2 results"):
        imported("z = com.acme.Half(x)")
    operator.compose("no function")
    with pytest.raises(OptionError, match=r"'z' \(com.acme.Half\).*is no ONNX function"):
        imported("z = com.acme.Half(x)")


# -- folding, purity -------------------------------------------------------------------------------
CONSTANTS = "one = Constant<value = float {1.0}>()  z = com.acme.Blend(one, one)"


def kinds(graph: Graph) -> list[str]:
    run_phases(graph)
    return [op.name for op in graph.block.ops]


def test_a_pure_operator_folds_and_another_does_not() -> None:
    operator = blend()
    assert kinds(imported(CONSTANTS)) == ["cuvil.constant", "cuvil.return"]
    operator.remove()
    blend(pure=False)
    assert "cuvil.com_acme_Blend" in kinds(imported(CONSTANTS))


def test_larger_constants_fold_in_the_weights() -> None:
    blend()
    large = {"x": np.ones((40, 3), np.float32), "y": np.ones((40, 3), np.float32)}
    graph = import_model(
        model("g (float[40, 3] x, float[40, 3] y) => (z) { z = com.acme.Blend(x, y) }"),
        values=large,
    )
    assert kinds(graph) == ["cuvil.constant", "cuvil.return"]
    np.testing.assert_array_equal(interpreter.run(graph, {})["z"], np.full((40, 3), 3, np.float32))


def test_equal_calls_merge_only_where_it_is_pure() -> None:
    twice = "a = com.acme.Blend(x, y)  b = com.acme.Blend(x, y)  z = Sub(a, b)"
    operator = blend()
    assert kinds(imported(twice)).count("cuvil.com_acme_Blend") <= 1
    operator.remove()
    blend(pure=False)
    assert kinds(imported(twice)).count("cuvil.com_acme_Blend") == 2
    assert "cuvil.com_acme_Blend" in kinds(imported("unused = com.acme.Blend(x, y)  z = Neg(x)"))


def test_a_meaning_that_fails_is_not_folded_and_fails_the_run() -> None:
    operator = blend()

    @operator.reference
    def meaning(x: Any, y: Any, *, gain: float) -> Any:
        raise RuntimeError("out of swirls")

    graph = imported(CONSTANTS)
    with pytest.raises(RuntimeFailure, match=r"meaning of .* failed: RuntimeError: out of swirls"):
        interpreter.run(graph, {"x": X, "y": Y})


def test_a_meaning_cannot_write_its_inputs() -> None:
    operator = blend()

    @operator.reference
    def meaning(x: Any, y: Any, *, gain: float) -> Any:
        x += y
        return x

    with pytest.raises(RuntimeFailure, match="read-only"):
        interpreter.run(imported("z = com.acme.Blend(x, y)"), {"x": X.copy(), "y": Y})
