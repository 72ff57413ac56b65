"""`check_model` names everything that is not supported at once."""

from __future__ import annotations

import pytest
from onnx_models import model

from cuvil.errors import ModelError
from cuvil.frontends.onnx import check_model

TEXT = """m (float[2, 2] x, int64[1] shape) => (y) {
  a = custom.Gone(x)
  b = Neg(a)
  c = custom.Thing(b)
  d = custom.Gone(x)
  e = Reshape(x, shape)
  t = Constant<value = bool {1}>()
  trip = Constant<value_int = 2>()
  y = Loop(trip, t, e) <body = body (int64 i, bool k, float[2, 2] u) => (bool k2, float[2, 2] v)
      { k2 = Identity(k)  w = custom.Other(u)  v = Identity(w) }>
}"""


def test_every_unsupported_operator_at_once():
    problems = {p.op: p for p in check_model(model(TEXT, extra=', "custom" : 3'))}
    assert set(problems) == {"Gone", "Thing", "Other"}
    assert problems["Gone"].count == 2 and problems["Gone"].nodes == ["a", "d"]
    assert problems["Thing"].domain == "custom" and problems["Thing"].opset == 3
    assert problems["Other"].path == "Loop"
    assert all(p.way_out for p in problems.values())


def test_nothing_is_wrong_with_a_supported_model():
    assert check_model(model("m (float[N] x) => (y) { y = Neg(x) }")) == []


def test_an_old_version_names_the_opset_that_helps():
    problems = check_model(model("m (float[N] x, int64[1] k) => (y) { y = Gelu(x) }", opset=17))
    assert [p.way_out for p in problems] == ["convert the model to opset 20 or later"]


def test_a_damaged_model_is_an_error_not_a_problem():
    with pytest.raises(ModelError, match="value 'z' is not defined"):
        check_model(model("m (float[N] x) => (y) { y = Add(x, z) }"))
