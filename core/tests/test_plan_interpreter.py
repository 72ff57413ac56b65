"""The interpreter of plans: the numbers of a program as it is, mistakes of the planner included."""

from __future__ import annotations

import re

import numpy as np
import pytest
from plans import changed, plan_of

from cuvil.errors import RuntimeFailure, ShapeMismatchError
from cuvil.plan.interpreter import run_plan

CHAIN = """g (float[4, 10] x) => (z)
{ a = Softmax(x)  s = ReduceMax<axes = [1]>(a)  t = Softmax<axis = 0>(s)  d = Add(a, t)
  z = Softmax(d) }"""
PRODUCT = "g (float[N, 4] x, float[4, 40] w) => (z) { m = MatMul(x, w)  z = Relu(m) }"


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def chain(x: np.ndarray) -> np.ndarray:
    a = softmax(x)
    return softmax(a + softmax(a.max(1, keepdims=True), 0))


def test_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
    np.testing.assert_allclose(run_plan(plan_of(CHAIN), {"x": x})["z"], chain(x), rtol=1e-6)


def test_buffers_that_overlap_show() -> None:
    def together(text: str) -> str:
        return re.sub(r"offset = #cuvil.dims<\[\d+\]>", "offset = #cuvil.dims<[0]>", text)

    x = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
    try:
        got = run_plan(changed(plan_of(CHAIN), together), {"x": x})["z"]
    except RuntimeFailure as error:
        assert "independent" in str(error)
    else:
        assert not np.allclose(got, chain(x))


def test_what_nobody_writes_is_garbage() -> None:
    def drop(text: str) -> str:
        return re.sub(r'  "host.launch".*\n', "", text, count=1)

    x = np.zeros((4, 10), np.float32)
    assert np.isnan(run_plan(changed(plan_of(CHAIN), drop), {"x": x})["z"]).any()


def test_a_template_with_run_time_rows() -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((4, 40)).astype(np.float32)
    plan = plan_of(PRODUCT, w=w)
    assert "nest.template" in str(plan.kernels["k0_contract"])
    for rows in (0, 1, 7):
        x = rng.standard_normal((rows, 4)).astype(np.float32)
        got = run_plan(plan, {"x": x})["z"]
        np.testing.assert_allclose(got, np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)


def test_a_kernel_that_leaves_its_buffer_is_named() -> None:
    plan = changed(
        plan_of(PRODUCT, w=np.ones((4, 40), np.float32)),
        lambda text: text.replace("rows = #cuvil.dims<[N,", "rows = #cuvil.dims<[N + 1,"),
    )
    with pytest.raises(RuntimeFailure, match="kernel k0_contract of m"):
        run_plan(plan, {"x": np.ones((2, 4), np.float32)})


def test_wrong_feeds_are_named() -> None:
    plan = plan_of(PRODUCT, w=np.ones((4, 40), np.float32))
    with pytest.raises(ShapeMismatchError, match="'x'"):
        run_plan(plan, {"x": np.ones((2, 5), np.float32)})
