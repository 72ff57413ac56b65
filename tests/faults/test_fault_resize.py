"""Resize by the formulas of the ONNX text, one axis at a time: rows B01 and B02."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.faults.cases import FORMS, Array, Model, arange, check
from tests.faults.nearest_pixel import COORDINATES, MODES, nearest

POSITIONS: dict[str, Callable[[int, int, int, float], float]] = {
    "half_pixel": lambda i, n, m, s: (i + 0.5) / s - 0.5,
    "pytorch_half_pixel": lambda i, n, m, s: (i + 0.5) / s - 0.5 if m > 1 else 0.0,
    "align_corners": lambda i, n, m, s: i * (n - 1) / (m - 1) if m > 1 else 0.0,
    "asymmetric": lambda i, n, m, s: i / s,
    "half_pixel_symmetric": lambda i, n, m, s: n / 2 * (1 - m / (s * n)) + (i + 0.5) / s - 0.5,
}


def weights(mode: str, distance: Array, a: float = -0.75) -> Array:
    d = np.abs(distance)
    if mode == "linear":
        return np.maximum(1 - d, 0)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    return np.where(d <= 1, near, np.where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0))


def matrix(n: int, m: int, scale: float, mode: str, coordinate: str, outside: bool) -> Array:
    """[m, n]: row i is what output i takes of each input; pixels beyond an edge are its own."""
    made, reach = np.zeros((m, n)), 1 if mode == "linear" else 2
    for i in range(m):
        x = POSITIONS[coordinate](i, n, m, scale)
        taps = np.arange(np.floor(x) - reach + 1, np.floor(x) + reach + 1)
        w = weights(mode, x - taps)
        if outside:
            w = np.where((taps < 0) | (taps >= n), 0, w)
            w = w / w.sum()
        np.add.at(made[i], np.clip(taps, 0, n - 1).astype(int), w)
    return made


def resized(x: Array, scales: list[float], sizes: list[int], *how: Any) -> Array:
    for axis, (s, m) in enumerate(zip(scales, sizes, strict=True), start=2):
        x = np.moveaxis(np.tensordot(matrix(x.shape[axis], m, s, *how), x, (1, axis)), 0, axis)
    return x


@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_b01_b02_filters(mode: str, form: str) -> None:
    m, wants = Model(19, form), []
    image = np.random.default_rng(1).standard_normal((1, 1, 4, 5)).astype(np.float32)
    x = m.feed(image, dims=[1, 1, "h", "w"] if form == "symbolic" else None)
    for coordinate, outside in itertools.product(COORDINATES, (0, mode == "cubic")):
        how = {"mode": mode, "coordinate_transformation_mode": coordinate}
        how["exclude_outside"] = int(outside)
        for factors in ((1.5, 0.5), (0.25, 2.6)):
            scales = m.const([1, 1, *factors], np.float32)
            m.keep(m.op("Resize", x, None, scales, **how))
            sizes = [int(n * s) for n, s in zip((4, 5), factors, strict=True)]
            wants.append(resized(image, list(factors), sizes, mode, coordinate, bool(outside)))
        for sizes in ([7, 3], [1, 1]):
            m.keep(m.op("Resize", x, None, None, m.const([1, 1, *sizes], np.int64), **how))
            ratios = [sizes[0] / 4, sizes[1] / 5]
            wants.append(resized(image, ratios, sizes, mode, coordinate, bool(outside)))
    for got, want in zip(m.run(), wants, strict=True):
        check(got, want, 1e-4, 1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f2", "u1"])
def test_b01_nearest_of_every_type(dtype: str, form: str) -> None:
    m, wants = Model(19, form), []
    image = (arange(1, 2, 3, 5) * 4).astype(dtype)
    x = m.feed(image)
    for coordinate, mode in itertools.product(COORDINATES, MODES):
        how = {"coordinate_transformation_mode": coordinate, "nearest_mode": mode}
        m.keep(m.op("Resize", x, None, None, m.const([1, 2, 4, 3], np.int64), **how))
        rows, columns = (
            nearest(3, 4, 4 / 3, coordinate, mode),
            nearest(5, 3, 3 / 5, coordinate, mode),
        )
        wants.append(image[:, :, rows][..., columns])
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_b02_antialias_of_free_extents(mode: str) -> None:
    m = Model(19)
    x = m.feed(arange(1, 2, 5, 6), dims=[1, 2, "h", "w"])
    sizes = m.const([1, 2, 3, 4], np.int64)
    how = {"mode": mode, "antialias": 1, "exclude_outside": int(mode == "cubic")}
    m.keep(m.op("Resize", x, None, None, sizes, **how))
    engine, reference = m.engine(), ReferenceEvaluator(m.proto())
    for extents in ((5, 6), (2, 2), (13, 4), (3, 40)):
        image = np.random.default_rng(1).standard_normal((1, 2, *extents)).astype(np.float32)
        (want,) = reference.run(None, {x: image})
        check(engine.run(None, {x: image})[0], want, 1e-4, 1e-5)


def test_b01_sizes_of_the_run() -> None:
    m = Model(19)
    x = m.feed(arange(1, 1, 26), dims=[1, 1, "n"])
    sizes = m.feed(np.array([1, 1, 64], np.int64))
    m.keep(m.op("Resize", x, None, None, sizes, nearest_mode="round_prefer_floor"))
    engine = m.engine()
    for n, to in ((26, 64), (64, 26), (1, 3), (5, 1)):
        feeds = {x: arange(1, 1, n), sizes: np.array([1, 1, to], np.int64)}
        (got,) = engine.run(None, feeds)
        want = nearest(n, to, to / n, "half_pixel", "round_prefer_floor")
        np.testing.assert_array_equal(got[0, 0], want)


@pytest.mark.parametrize("scale", [2.6, 1.1, 0.6, 1 / 3, 1.5])
def test_b01_extents_are_floors_of_float32_products(scale: float) -> None:
    m = Model(19)
    x = m.feed(arange(26), dims=["n"])
    m.keep(m.op("Resize", x, None, m.const([scale], np.float32)))
    engine = m.engine()
    for n in (*range(3, 130), 4095, 65535, 1000001):
        (got,) = engine.run(None, {x: arange(n)})
        assert got.shape == (np.floor(np.float32(n) * np.float32(scale)),), n
