"""Sequences and optionals as inputs and outputs of a graph."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import InterpreterBackend, f32, model

from cuvil.errors import UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ir.types import TensorType

DOUBLE = "m (seq(float[N]) s, float[M] x) => (seq(float[K]) y) { y = SequenceInsert(s, x) }"


def test_their_tensors_are_inputs_and_outputs():
    kinds = [TensorType.of((2,), "f32"), TensorType.of((3,), "f32")]
    graph = import_model(model(DOUBLE), structures={"s": kinds})
    assert graph.input_names == ("x", "s[0]", "s[1]")
    assert graph.output_names == ("y[0]", "y[1]", "y[2]")
    with pytest.raises(UnsupportedError, match="not a tensor"):
        import_model(model(DOUBLE))


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
