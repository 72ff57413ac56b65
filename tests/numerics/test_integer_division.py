"""Division by zero and of the lowest number by -1 have a value on every path; nothing traps."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import cuvil
from cuvil.frontends.onnx import import_model
from cuvil.ir.dtypes import dtype
from cuvil.ops.interpreter import run as interpret
from cuvil.ops.scalars import evaluate
from tools.numerics.builds import builds, compiled

NAMES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
OPERATORS = {"div": ("Div", {}), "mod": ("Mod", {}), "fmod": ("Mod", {"fmod": 1})}


def operands(name):
    """Every pair of edge numbers, in lengths that no vector divides."""
    info = np.iinfo(dtype(name).numpy)
    edges = [info.min, info.max, 0, 1, 2, 7, *([-1, -2, info.min + 1] if info.min else [])]
    pairs = [(a, b) for a in edges for b in edges] + [(info.min, info.max)] * 2
    return [np.array(column, dtype(name).numpy) for column in zip(*pairs, strict=True)]


def model(name, folded):
    a, b = operands(name)
    kind = helper.np_dtype_to_tensor_dtype(a.dtype)
    nodes = [
        helper.make_node(op, ["a", "b"], [result], **attrs)
        for result, (op, attrs) in OPERATORS.items()
    ]
    outputs = [helper.make_tensor_value_info(r, kind, [a.size]) for r in OPERATORS]
    inputs = [helper.make_tensor_value_info(n, kind, [a.size]) for n in ("a", "b")]
    constants = [helper.make_tensor(n, kind, v.shape, v.tolist()) for n, v in (("a", a), ("b", b))]
    if folded:
        graph = helper.make_graph(nodes, "g", [], outputs, constants)
    else:
        graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("folded", [False, True], ids=["run", "folded"])
@pytest.mark.parametrize("name", NAMES)
def test_models(name, folded):
    a, b = operands(name)
    feeds = {} if folded else {"a": a, "b": b}
    results = cuvil.compile(model(name, folded)).run(list(OPERATORS), feeds)
    for function, result in zip(OPERATORS, results, strict=True):
        np.testing.assert_array_equal(result, evaluate(function, a, b), err_msg=function)


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter(name):
    a, b = operands(name)
    results = interpret(import_model(model(name, folded=False)), {"a": a, "b": b})
    for function in OPERATORS:
        np.testing.assert_array_equal(results[function], evaluate(function, a, b), function)


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.name)
@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_single_elements(build, name):
    a, b = operands(name)
    for function, code in compiled(list(OPERATORS), name, build).items():
        expected = evaluate(function, a, b)
        np.testing.assert_array_equal(code.body(a, b), expected, err_msg=function)
        np.testing.assert_array_equal(code.tail(a, b), expected, err_msg=function)


SHAPES = """<ir_version: 9, opset_import: ["" : 18]>
g (float[N, M] x) => (int64[K] quotients, int64[L] rests) {
  n = Shape<start = 0, end = 1>(x)
  m = Shape<start = 1, end = 2>(x)
  one = Constant<value_ints = [1]>()
  quotient = Div(n, m)
  rest = Mod(n, m)
  quotients = Expand(one, quotient)
  rests = Expand(one, rest)
}"""


@pytest.mark.parametrize(("n", "m"), [(7, 2), (7, 0), (0, 0)])
def test_shapes(n, m):
    """Shape arithmetic takes a divisor of zero for one: an extent within its bounds."""
    engine = cuvil.compile(parser.parse_model(SHAPES))
    quotients, rests = engine.run(None, {"x": np.zeros((n, m), np.float32)})
    assert (quotients.size, rests.size) == divmod(n, m or 1)


def test_the_mean_of_no_integers():
    kind = TensorProto.INT32
    node = helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)
    x = helper.make_tensor_value_info("x", kind, ["n"])
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", kind, [])])
    engine = cuvil.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    assert engine.run(None, {"x": np.zeros(0, np.int32)})[0] == 0
    assert engine.run(None, {"x": np.int32([-7, 2])})[0] == -2
