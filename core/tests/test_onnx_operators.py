"""Operators where engines have gone wrong: versions, rounding, NaN, negative and odd arguments."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import f32, i64, model, run, run_node

from cuvil.errors import ModelError
from cuvil.frontends.onnx import import_model

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_before_opset_13_softmax_takes_all_axes_from_its_own_on(op):
    x = (np.arange(24, dtype=np.float32) / 10).reshape(2, 3, 4)
    old = run_node(op, [x], opset=11)
    new = run_node(op, [x], opset=13, axis=1)
    total = (lambda v: np.exp(v).sum()) if op == "LogSoftmax" else np.sum
    assert [round(float(total(part)), 4) for part in old] == [1, 1]
    assert [round(float(total(part)), 4) for part in new] == [4, 4]


def test_average_pool_counts_pads_but_not_what_is_beyond():
    x = f32(range(1, 17)).reshape(1, 1, 4, 4)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": 1}
    for opset in (11, 19):
        y = run_node("AveragePool", [x], opset=opset, count_include_pad=1, **window)
        expected = [[1.55556, 3.33333, 2], [6.33333, 11, 6], [4.5, 7.5, 4]]
        np.testing.assert_allclose(y[0, 0], expected, rtol=1e-5)
    assert np.isfinite(run_node("AveragePool", [x], opset=19, **window)).all()


@pytest.mark.parametrize(
    "attrs, expected",
    [
        ({"auto_pad": "SAME_UPPER"}, [[49, 63], [91, 105]]),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [4, 6, 14, 9]),
        ({"auto_pad": "SAME_LOWER", "strides": [2, 2]}, [12, 29, 18, 21]),
        (
            {"auto_pad": "SAME_UPPER", "strides": [2, 2], "output_padding": [1, 1]},
            [12, 29, 18, 21],
        ),
    ],
)
def test_conv_transpose_auto_pad(attrs, expected):
    x, w = f32([2, 3, 4, 5]).reshape(1, 1, 2, 2), f32(range(2, 11)).reshape(1, 1, 3, 3)
    y = run_node("ConvTranspose", [x, w], **attrs)[0, 0].tolist()
    assert (y if len(y) == 2 else y[0]) == expected and len(y) in (2, 4)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pads_longer_than_the_axis(mode):
    x = np.arange(3, dtype=np.float32)
    y = run_node("Pad", [x, i64([4, 4])], opset=19, fix=(1,), mode=mode)
    assert y.tolist() == np.pad(x, (4, 4), mode).tolist()


def test_a_negative_pad_crops():
    y = run_node("Pad", [np.arange(5, dtype=np.float32), i64([-4, 4])], fix=(1,))
    assert y.tolist() == [4, 0, 0, 0, 0]
    with pytest.raises(ModelError, match="crop more than axis 0"):
        run_node("Pad", [f32([1, 2]), i64([-4, 0])], fix=(1,))


def test_negative_indices():
    x = np.arange(12).reshape(3, 4)
    last = i64([[-1, -1]] * 3)
    assert run_node("GatherElements", [x, last], axis=1).tolist() == [[3, 3], [7, 7], [11, 11]]
    assert run_node("GatherND", [x, i64([[-1, -1], [0, -2]])]).tolist() == [11, 2]
    assert run_node("Gather", [x, i64([0, -1])])[:, 0].tolist() == [0, 8]
    updated = run_node("ScatterND", [x, i64([[-1], [0]]), i64([[9] * 4, [8] * 4])])
    assert updated.tolist() == [[8] * 4, [4, 5, 6, 7], [9] * 4]
    hot = run_node("OneHot", [i64([0, 2, 4, -1]), i64(5), i64([0, 1])], fix=(1,))
    assert hot.argmax(1).tolist() == [0, 2, 4, 4]


def test_top_k_order_of_ties_and_nan():
    def indices(x, k, largest=1):
        return run_node("TopK", [x, i64([k])], 2, fix=(1,), largest=largest)[1].tolist()

    assert indices(f32([1, 3, 3, 2, 3]), 3) == [1, 2, 4]
    assert indices(np.array([0, 2, 0, 1], np.uint8), 2, 0) == [0, 2]
    assert indices(f32([1, NAN, 5, 2, NAN, 4]), 3) == [1, 4, 2]


@pytest.mark.parametrize(
    "start, end, step",
    [
        (9, 0, -1), (9, 2, -1), (9, 0, -3), (0, 5, -1), (20, 3, -1), (2, 100, 3), (-3, -1, 1),
    ],
)  # fmt: skip
def test_slices_are_numpys(start, end, step):
    x = np.arange(10)
    bounds = [i64([v]) for v in (start, end, 0, step)]
    y = run_node("Slice", [x, *bounds], fix=(1, 2, 3, 4))
    assert y.tolist() == x[start:end:step].tolist()
    everything = [i64([v]) for v in (-1, -(2**63), 0, -1)]
    assert run_node("Slice", [x, *everything], fix=(1, 2, 3, 4)).tolist() == x[::-1].tolist()


@pytest.mark.parametrize("start, end, step", [(-3, 2**62, 1), (1, -1, 2), (-1, -(2**62), -1)])
def test_slices_of_symbolic_axes(start, end, step):
    text = f"""m (float[N] x) => (y) <int64[1] a = {{{start}}}, int64[1] b = {{{end}}},
      int64[1] c = {{0}}, int64[1] d = {{{step}}}> {{ y = Slice(x, a, b, c, d) }}"""
    for n in (3, 4, 7):
        x = np.arange(n, dtype=np.float32)
        assert run(model(text), x)[0].tolist() == x[start:end:step].tolist()


@pytest.mark.parametrize(
    "op, expected",
    [
        ("ReduceSum", [-1, 2, 3]),
        ("ReduceSumSquare", [1, 4, 9]),
        ("ReduceL1", [1, 2, 3]),
        ("ReduceLogSumExp", [-1, 2, 3]),
    ],
)
def test_a_reduction_without_axes_may_still_map(op, expected):
    x = f32([-1, 2, 3])
    y = run_node(op, [x], opset=18, noop_with_empty_axes=1)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert run_node(op, [x], opset=18, keepdims=0).shape == ()


def test_reductions_of_nothing():
    x = np.zeros((2, 0), np.float32)
    results = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -INF, "ReduceMin": INF}
    for op, expected in results.items():
        y = run_node(op, [x, i64([1])], opset=18, fix=(1,), keepdims=0)
        assert y.tolist() == [expected] * 2


def test_nan_passes_through_min_max_and_clip():
    x, limit = f32([[NAN], [1], [20]]), f32([10])
    np.testing.assert_array_equal(run_node("Min", [x, limit])[:, 0], f32([NAN, 1, 10]))
    np.testing.assert_array_equal(run_node("Max", [x, limit])[:, 0], f32([NAN, 10, 20]))
    clipped = run_node("Clip", [f32([NAN, -5, 5, 0]), f32(-1), f32(1)])
    np.testing.assert_array_equal(clipped, f32([NAN, -1, 1, 0]))
    assert run_node("Clip", [f32([0, 9]), None, f32(1)]).tolist() == [0, 1]
    assert run_node("Clip", [f32([0, 9]), f32(5), f32(1)]).tolist() == [1, 1]


def test_times_zero_stays_ieee():
    x = f32([1, INF, NAN])
    text = "m (float[3] x) => (y) { z = Constant<value_float = 0.0>()  y = Mul(x, z) }"
    np.testing.assert_array_equal(run(model(text), x)[0], f32([0, NAN, NAN]))


def test_layer_norm_of_large_values_does_not_cancel():
    x = f32([40000, 40001, 40002, 40003])
    y = run_node("LayerNormalization", [x, np.ones(4, np.float32)])
    np.testing.assert_allclose(y, [-1.34164, -0.44721, 0.44721, 1.34164], rtol=1e-4)


def test_quantised_products_do_not_saturate():
    a, b = np.full((1, 64), 255, np.uint8), np.full((64, 1), 127, np.int8)
    assert run_node("MatMulInteger", [a, b]).tolist() == [[2072640]]
    x, w = np.full((1, 2, 1, 1), 255, np.uint8), np.array([114, 113], np.int8).reshape(1, 2, 1, 1)
    zero = np.uint8(0)
    y = run_node(
        "QLinearConv", [x, f32(1), zero, w, f32(1), np.int8(0), f32(1000), zero]
    )  # 57885 / 1000
    assert y.ravel().tolist() == [58]


@pytest.mark.parametrize(
    "shapes",
    [
        ([1, 0, 8], [8, 3]),
        ([2, 0], [0, 3]),
        ([4], [4]),
        ([4], [2, 4, 3]),
        ([2, 1, 3, 4], [5, 4, 2]),
    ],
)
def test_matmul_of_odd_shapes(shapes):
    a, b = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    np.testing.assert_array_equal(run_node("MatMul", [a, b]), np.matmul(a, b))


def test_malformed_windows_are_refused():
    x, w = np.ones((1, 2, 4, 4), np.float32), np.ones((2, 2, 3, 3), np.float32)
    for attrs in ({"strides": [0, 1]}, {"group": 0}, {"pads": [1]}, {"dilations": [1, -1]}):
        with pytest.raises(ModelError, match="node"):
            run_node("Conv", [x, w], **attrs)


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ii->i", [(3, 3)]), ("...ij->...ji", [(2, 3, 4)]),
    ("bij,bjk,k->bi", [(2, 3, 4), (2, 4, 5), (5,)]), ("i,j", [(2,), (3,)]), ("ij->", [(2, 3)]),
    ("...i,...i->...", [(1, 4, 3), (2, 1, 3)]),
])  # fmt: skip
def test_einsum_is_numpys(equation, shapes):
    arrays = [np.random.default_rng(k).random(s, np.float32) for k, s in enumerate(shapes)]
    y = run_node("Einsum", arrays, equation=equation)
    np.testing.assert_allclose(y, np.einsum(equation, *arrays), rtol=1e-5)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_auto_pad_of_symbolic_images(auto_pad):
    text = f"""m (float[1, 1, H] x, float[1, 1, 4] w) => (y)
      {{ y = Conv<auto_pad = "{auto_pad}", strides = [2]>(x, w) }}"""
    graph = import_model(model(text))
    assert str(graph.outputs[0].type) == "!cuvil.tensor<[1, 1, (H + 1) floordiv 2], f32>"
    for n in (5, 6, 9):
        x, w = f32(range(n)).reshape(1, 1, n), f32([1, 10, 100, 1000]).reshape(1, 1, 4)
        static = run_node("Conv", [x, w], auto_pad=auto_pad, strides=[2])
        assert run(model(text), x, w)[0].tolist() == static.tolist()
