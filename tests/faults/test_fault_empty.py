"""Tensors without elements, rank 0, attributes without sense: row B26 of the fault list."""

from __future__ import annotations

import numpy as np
import pytest

from cuvil.errors import Error
from tests.faults.cases import Model, arange, check, f32, outputs_of


def empty(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_b26_products():
    m = Model()
    w, bias = m.const(arange(8, 3)), m.const(arange(3))
    m.keep(m.op("Add", m.op("MatMul", m.feed(empty(1, 0, 8)), w), bias))
    m.keep(m.op("MatMul", m.feed(empty(2, 0)), m.feed(empty(0, 3))))
    m.keep(
        m.op("Relu", m.op("Add", m.op("MatMul", m.feed(empty(2, 0)), m.feed(empty(0, 3))), bias))
    )
    m.keep(m.op("Gemm", m.feed(empty(0, 8)), w, bias))
    m.keep(m.op("Einsum", m.feed(empty(2, 0)), m.feed(empty(0, 2)), equation="ij,jk->ik"))
    a, b, c, d, e = m.run()
    check(a, empty(1, 0, 3))
    check(b, empty(2, 3))
    check(c, [[0, 1, 2]] * 2)
    check(d, empty(0, 3))
    check(e, empty(2, 2))


def test_b26_windows_and_norms():
    m = Model()
    w = m.const(arange(4, 2, 3, 3) / 9)
    image = m.feed(empty(0, 2, 5, 5))
    m.keep(m.op("Relu", m.op("Conv", image, w, pads=[1, 1, 1, 1])))
    m.keep(m.op("MaxPool", image, kernel_shape=[2, 2]), m.op("GlobalAveragePool", image))
    m.keep(m.op("Softmax", m.feed(empty(3, 0))), m.op("Softmax", m.feed(empty(0, 3))))
    ones = m.const(np.ones(4, np.float32))
    m.keep(m.op("LayerNormalization", m.feed(empty(0, 4)), ones, ones))
    m.keep(m.op("BatchNormalization", m.feed(empty(0, 4, 2)), ones, ones, ones, ones))
    shapes = [a.shape for a in m.run()]
    assert shapes == [
        (0, 4, 5, 5), (0, 2, 4, 4), (0, 2, 1, 1), (3, 0), (0, 3), (0, 4), (0, 4, 2),
    ]  # fmt: skip


def test_b26_elements_and_views():
    m = Model()
    none, one, data = m.feed(empty(0)), m.feed(f32([2])), m.feed(arange(2, 3))
    m.keep(m.op("Mul", none, one), m.op("Concat", none, one, none, axis=0))
    m.keep(m.op("Concat", m.feed(empty(2, 0)), data, axis=1))
    m.keep(m.op("Gather", data, m.const(np.zeros((0,), np.int64)), axis=1))
    m.keep(m.op("Gather", data, m.feed(np.zeros((2, 0), np.int32))))
    m.keep(m.op("Transpose", m.feed(empty(0, 2, 3)), perm=[2, 0, 1]))
    m.keep(m.op("Reshape", m.feed(empty(0, 3)), m.const([3, 0, 7], np.int64), allowzero=1))
    m.keep(m.op("Pad", none, m.const([1, 2], np.int64)))
    m.keep(m.op("Expand", m.feed(empty(1, 0)), m.const([4, 1], np.int64)))
    m.keep(m.op("Tile", data, m.const([0, 2], np.int64)))
    m.keep(m.op("ReduceSum", m.feed(empty(2, 0, 3)), m.const([1], np.int64), keepdims=0))
    m.keep(m.op("Slice", data, m.const([5], np.int64), m.const([9], np.int64)))
    m.keep(m.op("Where", m.feed(np.zeros(0, bool)), none, one))
    m.keep(m.op("ScatterND", data, m.feed(np.zeros((0, 1), np.int64)), m.feed(empty(0, 3))))
    got = m.run()
    shapes = [a.shape for a in got]
    assert shapes == [
        (0,), (1,), (2, 3), (2, 0), (2, 0, 3), (3, 0, 2), (3, 0, 7), (3,), (4, 0), (0, 6), (2, 3),
        (0, 3), (0,), (2, 3),
    ]  # fmt: skip
    check(got[7], [0, 0, 0])
    check(got[10], empty(2, 3))
    check(got[13], arange(2, 3))


def test_b26_an_extent_that_the_run_makes_zero():
    m = Model()
    x = m.feed(arange(2, 3), dims=["n", 3])
    y = m.op("MatMul", x, m.const(arange(3, 4)))
    m.keep(m.op("Softmax", y), m.op("Transpose", y, perm=[1, 0]))
    m.keep(m.op("Pad", x, m.const([1, 0, 1, 0], np.int64)))
    m.keep(m.op("Concat", x, x, axis=0), m.op("ReduceMax", m.op("Abs", x), axes=[1], keepdims=0))
    m.keep(m.op("Gather", m.const(arange(5)), m.op("Cast", x, to=7)))
    engine = m.engine()
    for n in (0, 1, 4, 0):
        data = arange(n, 3) % 5
        soft, turned, padded, twice, most, looked = outputs_of(m, engine, {m.inputs[0].name: data})
        assert soft.shape == (n, 4) and turned.shape == (4, n)
        check(padded, np.pad(data, [(1, 1), (0, 0)]))
        check(twice, np.concatenate([data, data]))
        assert most.shape == (n,)
        check(looked, data)


def test_b26_rank_0():
    m = Model()
    x, y = m.feed(np.float32(-2)), m.feed(arange(2, 2))
    m.keep(m.op("Add", x, y), m.op("Relu", x), m.op("Mul", x, x), m.op("Cast", x, to=7))
    m.keep(m.op("ReduceSum", x), m.op("ReduceSum", x, keepdims=0), m.op("Transpose", x))
    m.keep(m.op("Reshape", x, m.const([1, -1], np.int64)), m.op("Shape", x), m.op("Size", x))
    m.keep(m.op("Unsqueeze", x, m.const([0], np.int64)), m.op("Flatten", x, axis=0))
    m.keep(m.op("Expand", x, m.const([2, 1], np.int64)), m.op("Clip", x, m.const(np.float32(-1))))
    m.keep(m.op("Gather", y, m.const(1, np.int64)), m.op("Where", m.feed(np.bool_(True)), x, y))
    m.keep(m.op("Squeeze", x), m.op("Identity", x), m.op("Tile", x, m.const([], np.int64)))
    got = m.run()
    wants = [
        arange(2, 2) - 2, 0, 4, -2, -2, -2, -2, [[-2]], np.zeros(0), 1, [-2], [[-2]],
        [[-2], [-2]], -1, [2, 3], np.full((2, 2), -2), -2, -2, -2,
    ]  # fmt: skip
    for g, w in zip(got, wants, strict=True):
        check(g, w)


def test_b26_nothing_is_found() -> None:
    m = Model()
    x, c = m.feed(arange(3, 2), dims=["n", 2]), m.feed([True, False, True], dims=["n"])
    m.keep(m.op("NonZero", x), m.op("Compress", x, c, axis=0))
    m.keep(m.op("NonZero", m.feed(np.float32(3))), m.op("NonZero", m.feed(np.float32(0))))
    where = m.op("Squeeze", m.op("NonZero", c), m.const([0], np.int64))
    m.keep(m.op("ReduceSum", m.op("Gather", x, where), m.const([0], np.int64), keepdims=0))
    engine = m.engine()
    found, kept, one, none, total = outputs_of(m, engine)
    check(found, np.nonzero(arange(3, 2)))
    check(kept, [[0, 1], [4, 5]])
    assert one.shape == (0, 1) and none.shape == (0, 0)
    check(total, [4, 6])
    for n in (0, 4):
        empty_handed = {x: np.zeros((n, 2), np.float32), c: np.zeros(n, bool)}
        found, kept, _, _, total = outputs_of(m, engine, empty_handed)
        assert found.shape == (2, 0) and kept.shape == (0, 2)
        check(total, [0, 0])


@pytest.mark.parametrize(
    ("kind", "inputs", "attrs"),
    [
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"strides": [0, 1]}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"strides": [-1, 1]}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"group": 0}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"group": 3}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"dilations": [0, 0]}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"dilations": [1 << 40, 1]}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"pads": [1, 1]}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"pads": [1 << 50] * 4}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 3, 3)], {"kernel_shape": [0, 3]}),
        ("Conv", [arange(1, 2, 5, 5), arange(4, 2, 0, 3)], {}),
        ("Conv", [arange(2, 5), arange(4, 2)], {}),
        ("ConvTranspose", [arange(1, 2, 5, 5), arange(2, 2, 3, 3)], {"strides": [0, 0]}),
        ("MaxPool", [arange(1, 2, 5, 5)], {"kernel_shape": [0, 0]}),
        ("MaxPool", [arange(1, 2, 5, 5)], {"kernel_shape": [2, 2], "strides": [0, 0]}),
        ("MaxPool", [arange(1, 2, 5, 5)], {"kernel_shape": [9, 9]}),
        ("AveragePool", [arange(1, 2, 5, 5)], {"kernel_shape": [2, 2], "pads": [-9, 0, 0, 0]}),
        ("Transpose", [arange(2, 3)], {"perm": [0, 0]}),
        ("Transpose", [arange(2, 3)], {"perm": [0, 5]}),
        ("Concat", [arange(2, 3), arange(3, 3)], {"axis": 1}),
        ("Concat", [arange(2, 3), arange(2, 3)], {"axis": 7}),
        ("Softmax", [arange(2, 3)], {"axis": -4}),
        ("MatMul", [arange(2, 3), arange(4, 3)], {}),
        ("MatMul", [np.float32(1), arange(4, 3)], {}),
        ("Gemm", [arange(3), arange(4, 3)], {}),
        ("Flatten", [arange(2, 3)], {"axis": 9}),
        ("DepthToSpace", [arange(1, 4, 2, 2)], {"blocksize": 0}),
        ("DepthToSpace", [arange(1, 4, 2, 2)], {"blocksize": 1 << 40}),
        ("SpaceToDepth", [arange(1, 4, 2, 2)], {"blocksize": 3}),
        ("LayerNormalization", [arange(2, 3), arange(5)], {}),
        ("BatchNormalization", [arange(2, 3), *[arange(2)] * 4], {}),
        ("GroupNormalization", [arange(2, 3), arange(3), arange(3)], {"num_groups": 0}),
        ("Split", [arange(4)], {"num_outputs": 0}),
        ("LRN", [arange(1, 2, 3, 3)], {"size": 0}),
        ("Einsum", [arange(2, 3)], {"equation": "ij->k"}),
        ("Einsum", [arange(2, 3)], {"equation": "i" * 300}),
        ("ArgMax", [empty(0, 3)], {"axis": 0}),
        ("Trilu", [arange(3)], {}),
        ("EyeLike", [arange(3)], {}),
        ("OneHot", [arange(3), np.int64(-1), f32([0, 1])], {}),
        ("Cast", [arange(3)], {"to": 99}),
        ("Cast", [arange(3)], {"to": 0}),
        ("ReduceSum", [arange(2, 3), np.array([5], np.int64)], {}),
        ("Squeeze", [arange(2, 3), np.array([0], np.int64)], {}),
        ("Unsqueeze", [arange(2, 3), np.array([0, 0], np.int64)], {}),
        ("Reshape", [arange(2, 3), np.array([-1, -1], np.int64)], {}),
        ("Reshape", [arange(2, 3), np.array([-5], np.int64)], {}),
        ("Reshape", [arange(2, 3), np.array([0, 0, 0], np.int64)], {}),
        ("Expand", [arange(2, 3), np.array([3, 3], np.int64)], {}),
        ("Expand", [arange(1), np.array([1 << 31, 1 << 31, 1 << 31], np.int64)], {}),
        ("Tile", [arange(2, 3), np.array([1 << 40, 1 << 40], np.int64)], {}),
        ("Tile", [arange(2, 3), np.array([-1, 1], np.int64)], {}),
        ("ConstantOfShape", [np.array([-1], np.int64)], {}),
        ("ConstantOfShape", [np.array([1 << 62, 1 << 62], np.int64)], {}),
        ("Range", [np.int64(0), np.int64(1 << 62), np.int64(1)], {}),
        ("Range", [np.int64(0), np.int64(5), np.int64(0)], {}),
        ("Pad", [arange(2, 3), np.array([1, 2, 3], np.int64)], {}),
        ("Pad", [arange(2, 3), np.array([1 << 62] * 4, np.int64)], {}),
        ("Slice", [arange(4), *(np.array([v], np.int64) for v in (0, 4, 0, 0))], {}),
        ("Resize", [arange(1, 1, 2, 2), None, f32([1, 1, -1, 2])], {}),
        ("Resize", [arange(1, 1, 2, 2), None, f32([1, 1, np.inf, np.nan])], {}),
        ("Resize", [arange(1, 1, 2, 2), None, None, np.array([1, 1, 1 << 50, 2], np.int64)], {}),
        ("TopK", [arange(4), np.array([-1], np.int64)], {}),
        ("CumSum", [arange(4), np.array(3, np.int64)], {}),
        ("QuantizeLinear", [arange(4), arange(3)], {}),
        ("Attention", [arange(1, 2, 3)] * 3, {"q_num_heads": 0, "kv_num_heads": 0}),
    ],
)  # fmt: skip
def test_b26_senseless_nodes_are_refused(kind, inputs, attrs):
    """All but the first input are constants, as in files; where it is a number too, it is one."""
    m = Model(23 if kind == "Attention" else 18)
    fed = 0 if kind in ("ConstantOfShape", "Range") else 1
    names = [
        None if a is None else m.feed(a) if i < fed else m.const(a) for i, a in enumerate(inputs)
    ]
    m.keep(m.op(kind, *names, **attrs))
    with pytest.raises(Error) as caught:
        m.engine()
    assert "\n" not in str(caught.value)
