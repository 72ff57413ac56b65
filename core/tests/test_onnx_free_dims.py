"""Operators on dims that are free: what fixes them, and what a run checks."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import f32, i64, model, run

from cuvil.errors import ModelError, ShapeMismatchError
from cuvil.frontends.onnx import import_model
from cuvil.ir.record import tensor_type


def extents(text: str, opset: int = 22) -> list[str]:
    """The extents of the inputs of an imported graph, as `2,3 B,C`."""
    graph = import_model(model(text, opset))
    return [",".join(map(str, tensor_type(v).dims)) for v in graph.inputs]


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("Conv<kernel_shape = [2, 3]>(x, w)", "I,B,2,3"),
        ("ConvTranspose<kernel_shape = [2, 3]>(x, w)", "B,J,2,3"),
    ],
)
def test_an_attribute_says_how_large_a_kernel_is(text: str, dims: str):
    found = extents(f"m (float[A, B, H, W] x, float[I, J, K, L] w) => (y) {{ y = {text} }}")
    assert found == ["A,B,H,W", dims]


def test_a_run_checks_a_kernel_whose_extent_is_an_expression():
    text = """m (float[1, 1, H] x, float[1, 1, K] half) => (y) {
      w = Concat<axis = 2>(half, half)  y = Conv<kernel_shape = [4]>(x, w) }"""
    x = f32([[[1, 2, 3, 4, 5]]])
    assert run(model(text), x, f32([[[1, 2]]]))[0].tolist() == [[[16, 22]]]
    with pytest.raises(ShapeMismatchError):
        run(model(text), x, f32([[[1, 2, 3]]]))


@pytest.mark.parametrize(
    ("operator", "of"),
    [
        ("Slice(x, n, ends, axes)", "1"),
        ("Tile(x, n)", "2"),
        ("Pad(x, n)", "4"),
        ('Resize<mode = "nearest">(x, , , n)', "2"),
    ],
)
def test_the_operator_says_how_long_its_list_is(operator: str, of: str):
    text = f"""m (float[A, B] x, int64[N] n) => (y)
      <int64[1] ends = {{3}}, int64[1] axes = {{0}}> {{ y = {operator} }}"""
    assert extents(text) == ["A,B", of]


def test_as_many_sizes_as_parts():
    text = "m (float[A, B] x, int64[N] n) => (y, z) { y, z = Split<axis = 1>(x, n) }"
    assert extents(text) == ["A,B", "2"]
    y, z = run(model(text), f32([[1, 2, 3]]), i64([1, 2]))
    assert (y.tolist(), z.tolist()) == ([[1]], [[2, 3]])


def test_one_k():
    text = "m (float[A, B] x, int64[N] k) => (y, i) { y, i = TopK(x, k) }"
    assert extents(text) == ["A,B", "1"]


def test_operands_without_broadcast_are_of_one_shape():
    text = "m (float[A, B] x, float[C, D] y) => (z) { z = Add(x, y) }"
    assert extents(text, opset=6) == ["A,B", "A,B"]
    wrong = "m (float[2, 3] x, float[2, 1] y) => (z) { z = Add(x, y) }"
    with pytest.raises(ModelError, match=r"extents \[2, 1\], not \[2, 3\]"):
        extents(wrong, opset=6)


def test_a_scale_for_each_channel():
    text = """m (float[A, B, C] x, float[S] scale, uint8[Z] zero) => (y)
      { y = QuantizeLinear(x, scale, zero) }"""
    assert extents(text) == ["A,B,C", "B", "B"]


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_any_size_is_cut_or_padded_about_the_centre(size: int):
    text = """m (float[N] x) => (y) <int64[1] four = {4}> { y = CenterCropPad(x, four) }"""
    (y,) = run(model(text, 18), np.arange(1, size + 1, dtype=np.float32))
    expected = {2: [0, 1, 2, 0], 3: [1, 2, 3, 0], 4: [1, 2, 3, 4], 7: [2, 3, 4, 5]}
    assert y.tolist() == expected[size]


@pytest.mark.parametrize("size", [1, 5, 8])
@pytest.mark.parametrize("attributes", ["inverse = 0", "inverse = 1", "onesided = 1"])
def test_a_transform_of_any_length(size: int, attributes: str):
    text = f"""m (float[1, N, 2] x) => (y) <int64 axis = {{1}}> {{
      y = DFT<{attributes}>(x, , axis) }}"""
    x = np.random.default_rng(1).standard_normal((1, size, 2)).astype(np.float32)
    (y,) = run(model(text, 20), x)
    transform = np.fft.ifft if attributes == "inverse = 1" else np.fft.fft
    expected = transform(x[0, :, 0] + 1j * x[0, :, 1])
    kept = size // 2 + 1 if "onesided" in attributes else size
    np.testing.assert_allclose(y[0, :, 0] + 1j * y[0, :, 1], expected[:kept], atol=1e-5)


def test_a_transform_cut_to_a_length():
    text = """m (float[1, N, 1] x) => (y) <int64 axis = {1}, int64 length = {4}> {
      y = DFT(x, length, axis) }"""
    for size in (3, 6):
        x = np.arange(size, dtype=np.float32)
        (y,) = run(model(text, 20), x.reshape(1, size, 1))
        expected = np.fft.fft(x, 4)
        np.testing.assert_allclose(y[0, :, 0] + 1j * y[0, :, 1], expected, atol=1e-5)


def test_an_extent_that_pads_of_a_run_decide_is_one_symbol():
    """As sums of pads, extents made products of hundreds of terms in every kernel."""
    text = "m (float[A, B] x, int64[4] pads) => (y) { y = Pad(x, pads) }"
    graph = import_model(model(text))
    assert all("+" not in str(d) for d in tensor_type(graph.outputs[0]).dims)
    (y,) = run(model(text), f32([[1, 2], [3, 4]]), i64([1, 0, 0, -1]))
    assert y.tolist() == [[0], [1], [3]]
