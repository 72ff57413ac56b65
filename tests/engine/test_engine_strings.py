"""Engines and strings: the ways to pass them, errors by name, what comes back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cuvil
from tests import small_models


@pytest.fixture(scope="module")
def engine() -> cuvil.Engine:
    made = small_models.model(
        """words (string[N] x, string[2] y) => (string[N, 2] pairs, string[?, ?] parts) {
            axis = Constant<value_ints = [1]>()
            column = Unsqueeze(x, axis)
            pairs = StringConcat(column, y)
            parts, counts = StringSplit<delimiter = ",">(x)
        }"""
    )
    made.opset_import[0].version = 21
    return cuvil.compile(made, cache=False, threads=1)


def test_lists_objects_and_numpys_own_text(engine: cuvil.Engine) -> None:
    for x in (["a,b", "é"], np.array(["a,b", "é"]), np.array(["a,b", "é"], object),
              np.array(["a,b", "é"], np.dtypes.StringDType()), [b"a,b", "é"],
              np.array(["a,b", "", "é"], object)[::2]):  # fmt: skip
        pairs, parts = engine(x, ["1", "\0"])
        assert pairs.dtype == parts.dtype == object
        assert pairs.tolist() == [["a,b1", "a,b\0"], ["é1", "é\0"]]
        assert parts.tolist() == [["a", "b"], ["é", ""]]


def test_no_strings_at_all(engine: cuvil.Engine) -> None:
    pairs, parts = engine(np.array([], object), ["1", "2"])
    assert pairs.shape == (0, 2) and parts.shape == (0, 0)


@pytest.mark.parametrize(
    ("x", "error", "text"),
    [
        (np.array([1, 2]), cuvil.DTypeError, "input 'x': expected string, got int64"),
        (["a", 2], cuvil.DTypeError, "input 'x': expected string, got int as element 1"),
        (["a", None], cuvil.DTypeError, "got NoneType as element 1"),
        ([b"\xff"], cuvil.InputError, "input 'x': element 0 is bytes that are not UTF-8"),
        (["\ud800"], cuvil.InputError, "input 'x': element 0 holds half a surrogate pair"),
        ("a", cuvil.ShapeMismatchError, "input 'x': expected rank 1, got 0"),
    ],
)
def test_what_is_no_text_is_an_error(
    engine: cuvil.Engine, x: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        engine(x, ["1", "2"])


def test_its_description_says_string(engine: cuvil.Engine) -> None:
    assert [i.dtype for i in engine.get_inputs()] == ["string", "string"]
    assert engine.get_outputs()[1].dims == ("N", None)
    assert [z.tolist() for z in engine.zeros(N=1)] == [[""], ["", ""]]


def test_outputs_outlive_the_next_run_and_the_engine() -> None:
    made = small_models.model("add (string[N] x) => (string[N] y) { y = StringConcat(x, x) }")
    made.opset_import[0].version = 21
    with cuvil.compile(made, cache=False) as engine:
        words = [f"word{i}" for i in range(2000)]
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(engine, [words] * 20))
    assert all(r.tolist() == [w + w for w in words] for r in results)


def test_strings_are_no_numbers() -> None:
    text = "expected float32, got object"
    with (
        cuvil.compile(small_models.add(), cache=False) as engine,
        pytest.raises(cuvil.DTypeError, match=text),
    ):
        engine(np.array(["a"] * 4, object), np.zeros(4, np.float32))
