"""The forms in which the suite's cases run: which dims are free, and what becomes of constants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx_models import f32, i64, model

from cuvil.ir.dims import ceil_div
from cuvil.onnx_backend import CuvilBackend
from tools.conformance import ApartError, Outcome, ReferenceBackend, guard
from tools.conformance.forms import forms
from tools.conformance.forms.folded import FoldedRep, with_constants
from tools.conformance.forms.symbolic import SymbolicRep
from tools.conformance.lists import differences
from tools.conformance.suite import Suite
from tools.conformance.table import score, table


def free(text: str, *inputs: np.ndarray) -> tuple[list[np.ndarray], str]:
    """The outputs, and which dims were free."""
    rep = SymbolicRep(model(text), ReferenceBackend.compile_graph)
    return list(rep.run(list(inputs))), rep.note


def test_all_dims_are_free_where_the_operator_allows_it():
    (y,), note = free(
        "m (float[2, 3] x, float[3] z) => (y) { y = Add(x, z) }",
        f32([[1, 2, 3]] * 2),
        f32([1, 1, 1]),
    )
    assert y.tolist() == [[2, 3, 4]] * 2
    assert note == "3 of 3 free"


def test_a_dim_that_is_stretched_from_1_is_fixed():
    _, note = free(
        "m (float[2, 3] x, float[2, 1] z) => (y) { y = Add(x, z) }",
        f32([[1, 2, 3]] * 2),
        f32([[1], [2]]),
    )
    assert note == "3 of 4 free; z[1]: is stretched from 1"


def test_dims_are_fixed_of_which_a_quotient_of_1_is_stretched():
    text = (
        "m (float[6] x, float[2] z) => (y) <int64[2] s = {2, -1}>"
        "{ a = Reshape(x, s)  b = Reshape(z, s)  y = Mul(a, b) }"
    )
    rep = SymbolicRep(model(text), CuvilBackend.compile_graph)  # a run of it stretches no quotient
    (y,) = rep.run([f32([1, 2, 3, 4, 5, 6]), f32([1, 10])])
    assert y.tolist() == [[1, 2, 3], [40, 50, 60]]
    assert rep.note.startswith("1 of 2 free; z[0]: may be stretched from 1: ")


def test_a_dim_that_an_error_names_is_fixed():
    _, note = free(
        "m (float[4] x, int64[1] shape) => (y) { y = Reshape(x, shape) }",
        f32([1, 2, 3, 4]),
        i64([4]),
    )
    assert note.startswith("1 of 2 free; shape[0]:") and "the symbolic length shape[0]" in note


def test_a_case_without_dims_stands_apart():
    with pytest.raises(ApartError, match="no input has a dim"):
        free("m (float x) => (y) { y = Neg(x) }", f32(1))


def test_constants_take_the_place_of_inputs():
    source = model(
        "m (float[2] x, seq(float[1]) s) => (y, l) { y = Neg(x)  l = SequenceLength(s) }"
    )
    given = {"x": f32([1, 2]), "s": [f32([1]), f32([2])]}
    folded = with_constants(source, given)
    assert not folded.graph.input and len(folded.graph.initializer) == 3
    y, length = FoldedRep(source, ReferenceBackend.compile_graph).run(given)
    assert (y.tolist(), length) == ([-1, -2], 2)


def test_a_case_has_to_pass_in_every_round() -> None:
    class Doubtful(ReferenceBackend):
        @classmethod
        def rounds(cls) -> Iterator[str]:
            yield "well"
            cls.compile_graph = staticmethod(lambda graph: lambda feeds: {"y": feeds["x"]})
            yield "ill"

    reason = Suite(Doubtful).run("test_relu").reason
    assert reason.startswith("ill: AssertionError: Not equal")


def test_forms_are_found_in_order():
    names = list(forms())
    assert names.index("onnxruntime") < names.index("static") < names.index("symbolic")


def test_a_run_that_enters_python_is_not_native():
    with pytest.raises(guard.NotNativeError, match=r"entered cuvil\.ir\.dims\.ceil_div"):
        guard.watched(lambda: ceil_div(3, 2))()


def test_scores_by_group():
    outcomes = [
        Outcome("test_a", "nodes", ""),
        Outcome("test_b", "nodes", "no"),
        Outcome("test_c", "models", "apart: no", apart=True),
    ]
    assert score(outcomes) == "1 of 2 pass, 1 apart (nodes 1/2)"
    assert table({"as it is": outcomes}).splitlines()[2:] == [
        "| nodes | 2 | 1 |",
        "| models | 1 | 0 |",
        "| **all** | **3** | **1** |",
    ]
    assert differences(outcomes, {"test_a": "old"}) == [
        "test_a passes: take it off the list",
        "test_b fails: no",
    ]
