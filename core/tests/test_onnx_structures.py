"""Sequences and optionals as inputs and outputs of a graph."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import InterpreterBackend, f32, i64, model, run

from cuvil.errors import InputError, ModelError, UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ir.groups import NONE, SEQUENCE, TENSOR, Group, Groups
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType

DOUBLE = "m (seq(float[N]) s, float[M] x) => (seq(float[K]) y) { y = SequenceInsert(s, x) }"


def test_their_tensors_are_inputs_and_outputs():
    kinds = [TensorType.of((2,), "f32"), TensorType.of((3,), "f32")]
    graph = import_model(model(DOUBLE), structures={"s": kinds})
    assert graph.input_names == ("s[0]", "s[1]", "x")
    assert graph.output_names == ("y[0]", "y[1]", "y[2]")
    inputs = (Group("s", SEQUENCE, 2), Group("x"))
    assert graph.groups == Groups(inputs, (Group("y", SEQUENCE, 3),))
    with pytest.raises(UnsupportedError, match="'s' is a sequence: say how"):
        import_model(model(DOUBLE))


def test_how_many_there_are_may_be_said_instead():
    text = """m (float[N] x, seq(float[?, N]) s, optional(float[2]) o, optional(seq(float)) p)
        => (seq(float[?, ?]) y, optional(float[2]) q) { y = Identity(s)  q = Identity(o) }"""
    counts = {"s": 2, "o": 0, "p": 1}
    graph = import_model(model(text, opset=18), elements=counts, dims={"s_1_0": 7})
    assert graph.input_names == ("x", "s[0]", "s[1]", "p[0]")
    dims = [tuple(map(str, tensor_type(v).dims)) for v in graph.inputs]
    assert dims == [("N",), ("s_0_0", "N"), ("7", "N"), ()]
    assert graph.groups is not None
    assert [g.kind for g in graph.groups.inputs] == [TENSOR, SEQUENCE, NONE, SEQUENCE]
    assert graph.groups.outputs == (Group("y", SEQUENCE, 2), Group("q", NONE, 0, optional=True))
    assert import_model(model("m (float[2] x) => (float[2] y) { y = Relu(x) }")).groups is None


@pytest.mark.parametrize(
    ("counts", "error", "text"),
    [
        (
            {"x": 2},
            ModelError,
            "'x' is a sequence or an optional; there are: s, o, t",
        ),
        ({"s": 1, "o": 2}, ModelError, "one tensor or none, not 2"),
        ({"s": 1}, UnsupportedError, "'o' is an optional: say whether"),
        ({"t": 1}, UnsupportedError, "'t' has no shape"),
    ],
)
def test_numbers_that_do_not_fit_are_named(counts: dict[str, int], error: type, text: str):
    inputs = "float[2] x, seq(float[?]) s, optional(float[2]) o, seq(float[]) t"
    source = f"m ({inputs}) => (float[2] y) {{ y = Relu(x) }}"
    with pytest.raises(error, match=text):
        import_model(model(source, opset=18), elements=counts)


def test_the_backend_takes_and_gives_lists():
    run = InterpreterBackend.prepare(model(DOUBLE)).run
    for parts in ([], [f32([1, 2])], [f32([1]), f32([2, 3])]):
        (y,) = run([parts, f32([7, 8, 9])])
        assert [v.tolist() for v in y] == [*(v.tolist() for v in parts), [7, 8, 9]]


def test_an_optional_may_be_absent():
    source = model("m (optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }", opset=18)
    run = InterpreterBackend.prepare(source).run
    assert not run({"x": None})[0] and run({"x": f32([1, 2])})[0]


def test_branches_give_sequences_of_one_length():
    text = """m (bool c, float[2] x, float[3] z) => (seq(float[K]) y) {
      y = If(c) <then_branch = t () => (seq(float[2]) a) { a = SequenceConstruct(x, x) },
        else_branch = f () => (seq(float[3]) b) { b = SequenceConstruct(z, z) }> }"""
    run = InterpreterBackend.prepare(model(text)).run
    x, z = f32([1, 2]), f32([3, 4, 5])
    for chosen, want in ((True, x), (False, z)):
        (y,) = run([np.array(chosen), x, z])
        assert [v.tolist() for v in y] == [want.tolist()] * 2


def test_a_run_finds_where_an_axis_of_any_length_splits():
    text = """m (float[N] x, int64[3] sizes) => (a, b, c, n)
        <int64 i = {0}, int64 j = {1}, int64 k = {2}> {
      s = SplitToSequence(x, sizes)  n = SequenceLength(s)
      a = SequenceAt(s, i)  b = SequenceAt(s, j)  c = SequenceAt(s, k) }"""
    x = np.arange(6, dtype=np.float32)
    a, b, c, n = run(model(text), x, i64([1, 3, 2]))
    assert (a.tolist(), b.tolist(), c.tolist(), n) == ([0], [1, 2, 3], [4, 5], 3)
    fixed = run(model(text), x, sizes=i64([4, 0, 2]))
    assert [v.tolist() for v in fixed[:3]] == [[0, 1, 2, 3], [], [4, 5]]
    with pytest.raises(InputError):
        run(model(text), x, i64([1, 1, 1]))


def test_a_sequence_of_two_tensors_is_no_operator_on_a_sequence():
    text = """m (float[2] x, float[2] z) => (y) {
      s = SequenceConstruct(x, z)  y = ConcatFromSequence<axis = 0>(s) }"""
    assert run(model(text), f32([1, 2]), f32([3, 4]))[0].tolist() == [1, 2, 3, 4]
