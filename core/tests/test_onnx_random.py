"""Random operators: shapes, types, repeatable by seed, and the statistics they promise."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import f32, model, run


def one(call: str, inputs: str = "", *arrays: np.ndarray, opset: int = 22) -> np.ndarray:
    return run(model(f"m ({inputs}) => (y) {{ y = {call} }}", opset=opset), *arrays)[0]


@pytest.mark.parametrize("opset", [1, 22])
@pytest.mark.parametrize("kind, dtype", [(1, "f4"), (10, "f2"), (11, "f8")])
def test_uniform(kind, dtype, opset):
    call = f"RandomUniform<shape=[100, 200], low=-1.0, high=3.0, seed=7.0, dtype={kind}>()"
    y = one(call, opset=opset)
    assert y.shape == (100, 200) and y.dtype == dtype
    assert y.min() >= -1 and y.max() <= 3
    assert abs(y.astype(float).mean() - 1) < 0.03
    counts = np.histogram(y.astype(float), bins=16, range=(-1, 3))[0]
    assert abs(counts - 1250).max() < 5 * 1250**0.5


@pytest.mark.parametrize("opset", [1, 22])
def test_normal(opset):
    y = one("RandomNormal<shape=[200, 300], mean=2.0, scale=3.0, seed=1.0>()", opset=opset)
    assert abs(y.mean() - 2) < 0.06 and abs(y.std() - 3) < 0.06
    within = np.abs(y - 2) < 3
    assert abs(within.mean() - 0.6827) < 0.01


def test_a_seed_decides_and_nodes_without_one_differ():
    again = [one("RandomUniform<shape=[50], seed=3.0>()") for _ in range(2)]
    other = one("RandomUniform<shape=[50], seed=4.0>()")
    assert (again[0] == again[1]).all() and (again[0] != other).any()
    a, b = run(model("m () => (a, b) { a = RandomUniform<shape=[50]>() "
                     "b = RandomUniform<shape=[50]>() }"))  # fmt: skip
    assert (a != b).any()


def test_neighbours_are_independent():
    y = one("RandomUniform<shape=[10000], seed=5.0>()").astype(float)
    for lag in (1, 2, 256):
        assert abs(np.corrcoef(y[:-lag], y[lag:])[0, 1]) < 0.05


@pytest.mark.parametrize("opset", [15, 22])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_ones_by_their_probabilities(kind, opset):
    chances = np.linspace(0, 1, 5).repeat(4000).reshape(5, 4000)
    chances = chances.astype(np.float32 if kind == "float" else np.float64)
    y = one("Bernoulli<seed=2.0>(x)", f"{kind}[5, 4000] x", chances, opset=opset)
    assert y.dtype == chances.dtype and set(np.unique(y)) == {0, 1}
    np.testing.assert_allclose(y.mean(axis=1), np.linspace(0, 1, 5), atol=0.04)
    np.testing.assert_allclose(y.var(axis=1), [0, 0.1875, 0.25, 0.1875, 0], atol=0.02)
    again = one("Bernoulli<seed=2.0>(x)", f"{kind}[5, 4000] x", chances, opset=opset)
    other = one("Bernoulli<seed=3.0>(x)", f"{kind}[5, 4000] x", chances, opset=opset)
    assert (y == again).all() and (y != other).any()
    whole = one("Bernoulli<dtype=6>(x)", f"{kind}[5, 4000] x", chances, opset=opset)
    assert whole.dtype == np.int32


@pytest.mark.parametrize("opset", [7, 22])
def test_classes_by_their_probabilities(opset):
    logits = np.log(f32([[0.1, 0.6, 0.3], [1, 1e-9, 1e-9]]))
    call = "Multinomial<sample_size=5000, seed=1.0>(x)"
    drawn = one(call, "float[2, 3] x", logits, opset=opset)
    assert drawn.shape == (2, 5000) and drawn.dtype == np.int32
    shares = np.bincount(drawn[0], minlength=3) / 5000
    np.testing.assert_allclose(shares, [0.1, 0.6, 0.3], atol=0.03)
    assert (drawn[1] == 0).all()


@pytest.mark.parametrize("opset", [1, 22])
@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike"])
def test_like_takes_shape_and_type(op, opset):
    source = model(f"m (double[N, 3] x) => (y) {{ y = {op}(x) }}", opset=opset)
    (y,) = run(source, np.zeros((4, 3)))
    assert y.shape == (4, 3) and y.dtype == np.float64
    source = model(f"m (double[N, 3] x) => (y) {{ y = {op}<seed=1.0, dtype=1>(x) }}", opset=opset)
    (y,) = run(source, np.zeros((4000, 3)))
    mean, deviation = (0, 1) if op == "RandomNormalLike" else (0.5, 12**-0.5)
    assert y.dtype == np.float32
    assert abs(y.mean() - mean) < 0.05 and abs(y.std() - deviation) < 0.05


@pytest.mark.parametrize("opset", [12, 13, 22])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_what_training_drops_is_made_up_for(kind, opset):
    text = f"""m ({kind}[M, 1000] x, bool t) => (y, kept) <float r = {{0.25}}> {{
      y, kept = Dropout<seed = 3>(x, r, t) }}"""
    x = np.full((40, 1000), 3, np.float32 if kind == "float" else np.float64)
    for fixed in (False, True):
        feeds = [x] if fixed else [x, np.array(True)]
        more = {"t": np.array(True)} if fixed else {}
        y, kept = run(model(text, opset=opset), *feeds, **more)
        assert y.dtype == x.dtype and kept.dtype == bool
        assert (y[~kept] == 0).all() and np.allclose(y[kept], 4)
        assert abs(kept.mean() - 0.75) < 0.01
    y, kept = run(model(text, opset=opset), x, np.array(False))
    assert (y == x).all() and kept.all()
