"""skl2onnx's output of fitted scikit-learn models, compiled, against scikit-learn itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from scikit.pipelines import CASES, Case, data
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common import _container
from skl2onnx.common.data_types import StringTensorType
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import cuvil
from cuvil.errors import UnsupportedError

OPSETS = {"": 18, "ai.onnx.ml": 3}
UNSEEN = np.random.default_rng(1).normal(0, 0.3, (150, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def numbers_for_bools(monkeypatch: pytest.MonkeyPatch) -> None:
    """skl2onnx puts bools into lists of integers, which newer protobufs refuse."""
    make_node = _container.make_node

    def make(*args: Any, **attributes: Any) -> onnx.NodeProto:
        for name, value in attributes.items():
            if isinstance(value, list) and any(isinstance(v, bool) for v in value):
                attributes[name] = [int(v) for v in value]
        return make_node(*args, **attributes)

    monkeypatch.setattr(_container, "make_node", make)


def last_step(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def fitted(case: Case) -> tuple[Any, np.ndarray]:
    """The model, and samples it has not seen; missing ones and categories stay what they are."""
    known = data()
    x = known[case.features]
    model = clone(case.model).fit(x, known[case.target])
    return model, (x + np.abs(UNSEEN) if case.features == "x" else x[::-1]).copy()


def converted(model: Any, x: np.ndarray, zipmap: Any = False) -> onnx.ModelProto:
    last = last_step(model)
    makes_maps = hasattr(last, "classes_") and not isinstance(last, LinearSVC)
    options = {id(last): {"zipmap": zipmap}} if makes_maps else {}
    if x.dtype == object:
        texts = [("X", StringTensorType([None, *x.shape[1:]]))]
        return convert_sklearn(model, initial_types=texts, options=options, target_opset=OPSETS)
    return to_onnx(model, x[:1], options=options, target_opset=OPSETS)


def expected_of(model: Any, method: str, x: np.ndarray) -> np.ndarray:
    value = getattr(model, method)(x)
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)


@pytest.mark.parametrize("name", CASES)
def test_a_fitted_model_predicts_what_it_predicts_in_scikit_learn(name: str):
    case = CASES[name]
    model, x = fitted(case)
    engine = cuvil.compile(converted(model, x), cache=False)
    results = engine.run(None, {engine.get_inputs()[0].name: x})
    expected = [expected_of(model, method, x) for method in case.methods]
    sure = np.abs(expected[-1]) > 1e-4 if name in ("one class", "isolation forest") else slice(None)
    for got, want, method in zip(results, expected, case.methods, strict=True):
        if name == "SVC, two classes" and method == "decision_function":
            assert (got[:, 0] == -got[:, 1]).all()
            got = got[:, 0]  # scikit-learn gives one score, with the sign of the second class
        if method == "predict" and not case.target.startswith("number"):
            assert got.ravel()[sure].tolist() == want.ravel()[sure].tolist()
        else:
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-4, atol=5e-5)


def test_maps_are_refused_with_the_way_out():
    model = LogisticRegression().fit(data()["x"], data()["three"])
    with pytest.raises(UnsupportedError, match="zipmap': False"):
        cuvil.compile(converted(model, data()["x"], zipmap=True), cache=False)


def test_probabilities_in_columns():
    x = data()["x"]
    model = LogisticRegression().fit(x, data()["three"])
    engine = cuvil.compile(converted(model, x, zipmap="columns"), cache=False)
    label, *columns = engine.run(None, {engine.get_inputs()[0].name: x})
    assert label.tolist() == model.predict(x).tolist()
    got = np.stack([c.reshape(-1) for c in columns], axis=1)
    np.testing.assert_allclose(got, model.predict_proba(x), rtol=1e-4, atol=1e-6)
