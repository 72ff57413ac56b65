"""Extents that a run finds, at every level: interpreter, plan on numpy, native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import f32, i64, model

from cuvil.engine.front_door import compile_engine
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify_memory import verify_memory


def run_levels(source: onnx.ModelProto, *calls: list[Any]) -> list[list[np.ndarray]]:
    """Outputs of every call by native code, after the same was found at all other levels."""
    graph = import_model(source)
    graph.module.verify()
    plan = make_plan(graph)
    verify_memory(plan)
    engine = compile_engine(graph, Options())
    found = []
    for inputs in calls:
        feeds = dict(zip(graph.input_names, inputs, strict=True))
        native = dict(zip(graph.output_names, engine.run(None, feeds), strict=True))
        for other in (interpreter.run(graph, feeds), run_plan(plan, feeds)):
            for name, value in other.items():
                np.testing.assert_allclose(native[name], value, rtol=1e-6, err_msg=name)
                assert native[name].dtype == value.dtype
        found.append(list(native.values()))
    return found


def test_non_zero_of_any_shape():
    source = model("m (float[A,B] x) => (int64[2,K] y) { y = NonZero(x) }")
    some, none = f32([[1, 0, 2], [0, 0, 3]]), np.zeros((2, 2), np.float32)
    first, second, empty = run_levels(source, [some], [none], [np.zeros((0, 3), np.float32)])
    assert first[0].tolist() == [[0, 0, 1], [0, 2, 2]]
    assert second[0].shape == empty[0].shape == (2, 0)


@pytest.mark.parametrize("axis, expected", [("<axis=1>", [[1, 3], [4, 6]]), ("", [1, 3])])
def test_what_follows_uses_the_extent(axis, expected):
    rank = 2 if axis else 1
    out = "A,K" if rank == 2 else "K"
    source = model(
        f"m (float[A,B] x, bool[B] c) => (float[{out}] y)"
        f" {{ z = Compress{axis}(x, c)  two = Add(z, z)  y = Sub(two, z) }}"
    )
    x, c = f32([[1, 2, 3], [4, 5, 6]]), np.array([True, False, True])
    assert run_levels(source, [x, c])[0][0].tolist() == expected


def test_two_outputs_share_one_extent():
    source = model("m (bool[A] c) => (int64[K] y, int64 n) { p = NonZero(c) y = Squeeze(p) "
                   "n = Size(y) }")  # fmt: skip
    y, n = run_levels(source, [np.array([0, 1, 1], bool)])[0]
    assert y.tolist() == [1, 2] and n == 2
    assert i64(n).shape == ()
