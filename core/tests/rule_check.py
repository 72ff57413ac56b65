"""Values for the inputs of small graphs, and comparison of what graphs give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cuvil.ir.dims import evaluate, symbols
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type

Array = np.ndarray[Any, Any]
SIZES = (3, 5, 2, 7, 4)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0])


def environment(graph: Graph) -> dict[str, int]:
    """A small value for every symbol of the inputs."""
    return dict(zip(graph.symbols(), SIZES, strict=False))


def feeds_of(graph: Graph, special: bool = False, seed: int = 0) -> dict[str, Array]:
    """Seeded inputs; special: floats begin with zeros of both signs, infinities and a NaN."""
    rng = np.random.default_rng(seed)
    env = environment(graph)
    feeds: dict[str, Array] = {}
    for name, value in zip(graph.input_names, graph.inputs, strict=True):
        kind = tensor_type(value)
        assert all(s in env for d in kind.dims for s in symbols(d))
        shape = [evaluate(d, env) for d in kind.dims]
        if kind.dtype.kind == "bool":
            array = rng.integers(0, 2, shape).astype(bool)
        elif kind.dtype.is_integer:
            array = rng.integers(0, 3, shape).astype(kind.dtype.numpy)
        else:
            array = rng.standard_normal(shape)
            flat = array.reshape(-1)
            if special:
                flat[: len(SPECIAL)] = SPECIAL[: flat.size]
            array = array.astype(kind.dtype.numpy)
        feeds[name] = array
    return feeds


def same_numbers(got: Mapping[str, Array], want: Mapping[str, Array], tolerance: float) -> None:
    """Equal names, dtypes, shapes; values equal (zeros by sign) or within a relative tolerance."""
    assert list(got) == list(want)
    for name, expected in want.items():
        array = got[name]
        assert array.dtype == expected.dtype
        assert array.shape == expected.shape
        if array.dtype.kind in "biu":
            np.testing.assert_array_equal(array, expected)
            continue
        wide, other = array.astype(np.float64), expected.astype(np.float64)
        if tolerance:
            tolerance = max(tolerance, {"float16": 2e-3, "bfloat16": 2e-2}.get(array.dtype.name, 0))
            scale = np.max(np.abs(other), initial=0, where=np.isfinite(other))
            np.testing.assert_allclose(wide, other, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(wide, other)
            numbers = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(wide[numbers]), np.signbit(other[numbers]))
