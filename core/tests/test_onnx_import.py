"""Importing: symbolic dims, shape arithmetic, functions, subgraphs, and what is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import f32, i64, model, ops, run

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx import DataDependentError, import_model
from cuvil.ir.record import tensor_type
from cuvil.ir.text import parse_ir, print_ir

HEADS = """
m (float[B, S, 12] x) => (float[B, S, 3, 4] y) <int64[1] zero = {0}, int64[1] one = {1},
                                             int64[2] heads = {3, -1}> {
  shape = Shape(x)
  b = Gather(shape, zero)
  s = Gather(shape, one)
  wanted = Concat<axis = 0>(b, s, heads)
  y = Reshape(x, wanted)
}"""


def dims(value) -> list[str]:
    return [str(d) for d in tensor_type(value).dims]


def test_shape_arithmetic_vanishes():
    graph = import_model(model(HEADS))
    assert ops(graph) == ["reshape"]
    assert dims(graph.outputs[0]) == ["B", "S", "3", "4"]
    assert graph.symbols() == ("B", "S")


def test_a_dimension_can_be_fixed():
    graph = import_model(model(HEADS), dims={"S": 7})
    assert dims(graph.outputs[0]) == ["B", "7", "3", "4"]
    with pytest.raises(ModelError, match="no input has a dimension called T; there are B, S"):
        import_model(model(HEADS), dims={"T": 7})


def test_unnamed_dims_are_called_after_input_and_axis():
    source = model("m (float[N, 2] x, float[2] z) => (float[N, 2] y) { y = Add(x, z) }")
    source.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "?"
    graph = import_model(source)
    assert dims(graph.outputs[0]) == ["x_0", "2"]


def test_a_dim_param_may_be_an_expression_of_others():
    source = model("m (float[N] x, float[M] z) => (float[M] y) { y = Concat<axis = 0>(x, x, z) }")
    source.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "2*N + 1"
    graph = import_model(source)
    assert dims(graph.outputs[0]) == ["4*N + 1"]


def test_shapes_by_way_of_floats_are_exact():
    text = """m (float[H] x) => (int64[1] y) <float[1] half = {0.5}> {
      s = Shape(x)  f = Cast<to = 1>(s)  g = Mul(f, half)  c = Ceil(g)  y = Cast<to = 7>(c) }"""
    graph = import_model(model(text))
    assert ops(graph) == ["dims"]
    assert run(model(text), f32(range(7)))[0] == [4]


def test_ir_of_an_imported_graph_round_trips():
    text = print_ir(import_model(model(HEADS)).module)
    assert print_ir(parse_ir(text)) == text


LOCAL = """
<domain: "local", opset_import: ["" : 17]>
scaled_relu <alpha>(x) => (y) { c = Constant<value_float: float = @alpha>()
                                m = Mul(x, c)  y = Relu(m) }
<domain: "local", opset_import: ["" : 17, "local" : 1]>
twice <alpha>(x) => (y) { m = local.scaled_relu<alpha: float = @alpha>(x)
                          y = local.scaled_relu<alpha = 3.0>(m) }"""


def test_local_functions_nest_and_pass_attributes():
    text = "m (float[N] x) => (float[N] y) { y = local.twice<alpha = 2.0>(x) }"
    source = model(text, functions=LOCAL, extra=', "local" : 1')
    assert run(source, f32([-1, 1]))[0].tolist() == [0, 6]


def test_operators_that_onnx_defines_by_a_function():
    text = "m (float[N] x) => (float[N] y) { y = Celu<alpha = 2.0>(x) }"
    assert ops(import_model(model(text))) == ["celu"]
    text = "m (float[8] x) => (y) { n = Size(x)  y = HannWindow(n) }"
    expected = 0.5 - 0.5 * np.cos(np.pi / 4 * np.arange(8))
    np.testing.assert_allclose(run(model(text), f32(range(8)))[0], expected, atol=1e-6)


BRANCHES = """m (float[N] x%s) => (float[N] y) {
  %s
  y = If(c) <then_branch = then () => (float[N] t) { t = Neg(x) },
             else_branch = other () => (float[N] e) { e = Abs(x) }> }"""


def test_an_if_known_at_compile_time_leaves_one_branch():
    text = "n = Size(x)  zero = Constant<value_int = -1>()  c = Equal(n, zero)"
    assert ops(import_model(model(BRANCHES % ("", text)))) == ["abs"]


def test_an_if_on_data_keeps_both():
    source = model(BRANCHES % (", bool c", ""))
    assert "if" in ops(import_model(source))
    for flag, expected in ((True, [1, -2]), (False, [1, 2])):
        assert run(source, f32([-1, 2]), np.array(flag))[0].tolist() == expected


LOOP = """m (float[1] v0, float[1] k) => (float[1] v, float[3, 1] s, int64[3] n) {
  trip = Constant<value_int = 3>()
  none = Constant<value = bool {1}>()
  v, s, n = Loop(trip, none, v0) <body = body (int64 i, bool c, float[1] u) =>
      (bool c2, float[1] w, float[1] s1, int64 n1)
      { c2 = Identity(c)  s1 = Identity(u)  n1 = Identity(i)  w = Add(u, k) }> }"""


def test_a_loop_stacks_what_was_before_the_step():
    v, s, n = run(model(LOOP), f32([10]), f32([2]))
    assert v.tolist() == [16] and s.tolist() == [[10], [12], [14]] and n.tolist() == [0, 1, 2]


def test_a_loop_may_end_early_by_its_condition():
    text = """m (float[1] v0, float limit, bool go) => (float[1] v) {
      trip = Constant<value_int = 5>()
      v = Loop(trip, go, v0) <body = body (int64 i, bool c, float[1] u) => (bool c2, float[1] w)
        { w = Add(u, u)  s = ReduceSum<keepdims = 0>(w)  c2 = Less(s, limit) }> }"""
    for go, limit, expected in ((True, 5, 8), (True, 1e9, 32), (False, 5, 1), (True, 0, 2)):
        assert run(model(text), f32([1]), f32(limit), np.array(go))[0].tolist() == [expected]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("{ y = Add(x, z) }", "value 'z' is not defined"),
        ("{ a = Add(x, b)  b = Neg(a)  y = Neg(b) }", "cycle"),
        ("{ y = Neg(x, x) }", r"node 'y' \(Neg\): 2 inputs, the most are 1"),
        ("{ y = Add(x) }", "an input is missing, 2 are required"),
        ("{ y = Transpose<perm = [0, 3]>(x) }", "perm 3 is not an axis of rank 2"),
        ("{ y = Concat(x, x) }", "attribute axis is missing"),
        ("{ y = Softmax<axis = 1.5>(x) }", "attribute axis is float, not int"),
        ("{ n = Not(x)  y = Neg(n) }", "not does not take"),
        ("{ y = MaxPool<kernel_shape = [0, 0]>(x) }", "does not fit 0 spatial axes"),
    ],
)
def test_a_bad_model_is_refused_with_its_reason(text, reason):
    with pytest.raises(ModelError, match=reason):
        import_model(model(f"m (float[2, 3] x) => (y) {text}"))


def test_what_is_not_implemented_says_so():
    with pytest.raises(UnsupportedError, match=r"\(Gradient\): the operator is not supported"):
        import_model(model("m (float[2, 2] x) => (y) { y = Gradient(x) }"))
    with pytest.raises(UnsupportedError, match="attribute colour is not supported"):
        import_model(model("m (float[2] x) => (y) { y = Neg<colour = 1>(x) }"))


def test_an_opset_of_the_future_is_refused():
    with pytest.raises(UnsupportedError, match="opset 999 is newer than"):
        import_model(model("m (float[2] x) => (y) { y = Neg(x) }", opset=999))


def test_a_function_that_calls_itself_is_refused():
    functions = '<domain: "local", opset_import: ["local" : 1]> f (x) => (y) { y = local.f(x) }'
    text = "m (float[2] x) => (y) { y = local.f(x) }"
    with pytest.raises(ModelError, match="nested deeper than"):
        import_model(model(text, functions=functions, extra=', "local" : 1'))


def test_a_rank_that_data_decides_names_the_input_and_can_be_fixed():
    source = model("m (float[2, 3] x, int64[1] axes) => (y) { y = Unsqueeze(x, axes) }")
    with pytest.raises(DataDependentError, match="depends on input data of 'axes'") as caught:
        import_model(source)
    assert caught.value.inputs == ("axes",)
    assert run(source, np.ones((2, 3), np.float32), axes=i64([1]))[0].shape == (2, 1, 3)


def test_a_slice_of_the_first_element_asks_for_one():
    text = """m (float[B, 3] x) => (float[1, 3] y) <int64[1] a = {0}, int64[1] b = {1}>
      { y = Slice(x, a, b, a) }"""
    graph = import_model(model(text))
    assert dims(graph.outputs[0]) == ["1", "3"] and graph.bounds == {"B": (1, None)}


def test_images_must_be_large_enough_for_their_windows():
    text = """m (float[1, 1, H] x, float[1, 1, 3] w) => (y) {
      a = Conv<strides = [2]>(x, w)  b = Conv<strides = [2]>(a, w)
      y = MaxPool<kernel_shape = [2]>(b) }"""
    assert import_model(model(text)).bounds == {"H": (11, None)}
    assert run(model(text), np.ones((1, 1, 11), np.float32), f32([[[1, 1, 1]]]))[0].size == 1


def test_initializers_are_constants_even_where_they_are_inputs_too():
    source = model("m (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }")
    source.graph.initializer.append(onnx.numpy_helper.from_array(f32([1, 2]), "w"))
    graph = import_model(source)
    assert graph.input_names == ("x",)


def test_nodes_need_not_be_sorted():
    source = model("m (float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }")
    first, second = source.graph.node[0], source.graph.node[1]
    swapped = [onnx.NodeProto.FromString(n.SerializeToString()) for n in (second, first)]
    del source.graph.node[:]
    source.graph.node.extend(swapped)
    assert ops(import_model(source)) == ["neg", "abs"]


@pytest.mark.parametrize(
    "body, expected",
    [
        ("y = Add(x, z)", [["A"], ["A"]]),
        ("w = Constant<value_floats = [1.0, 2.0]>()  v = Mul(x, w)  y = Neg(z)", [["2"], ["B"]]),
        ("s = Shape(z)  y = Reshape(x, s)", [["A"], ["A"]]),
        ("d = Concat<axis = 0>(x, x)  y = Add(d, z)", [["A"], ["2*A"]]),
        ("y = Concat<axis = 0>(x, z)", [["A"], ["B"]]),
    ],
)
def test_extents_that_must_be_equal_become_one(body, expected):
    graph = import_model(model(f"m (float[A] x, float[B] z) => (y) {{ {body} }}"))
    assert [dims(v) for v in graph.inputs] == expected


def test_what_one_branch_alone_needs_is_not_asked_for():
    text = """m (float[A] x, float[B] z, bool c) => (y) {
      y = If(c) <then_branch = one () => (t) { t = Neg(x) },
                 else_branch = two () => (e) { s = Add(x, z)  u = Mul(s, z)  e = Add(u, x) }> }"""
    assert import_model(model(text)).symbols() == ("A", "B")
    both = text.replace("t = Neg(x)", "t = Mul(x, z)")
    assert import_model(model(both)).symbols() == ("A",)
