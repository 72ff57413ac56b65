"""Fusion, control flow, dims that the run decides: rows B27 to B37 and B54 of the fault list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, helper

from cuvil.errors import Error
from tests.faults.cases import Array, Model, arange, branch, check, f32, outputs_of

RNG = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def conv_reference(x: Array, w: Array) -> Array:
    """A convolution of one pixel taps [O, I, 1, 1]."""
    return np.einsum("nihw,oi->nohw", x, w[:, :, 0, 0])


def batch_norm(y: Array, scale: Array, bias: Array, mean: Array, var: Array) -> Array:
    s = (scale / np.sqrt(var + 1e-5)).reshape(-1, 1, 1)
    return y * s + (bias - mean * s[:, 0, 0]).reshape(-1, 1, 1)


def test_b27_folding_leaves_shared_weights_and_outputs_alone():
    m = Model()
    xv, zv, wv = normal(1, 2, 4, 4), normal(1, 2, 4, 4), normal(3, 2, 1, 1)
    stats = [normal(3), normal(3), normal(3), np.array([0, 1, 2], np.float32)]
    x, z, w = m.feed(xv), m.feed(zv), m.const(wv)
    raw = m.op("Conv", x, w)
    m.keep(m.op("BatchNormalization", raw, *map(m.const, stats), epsilon=1e-5))
    m.keep(m.op("Conv", z, w), raw)
    yes = branch("yes", lambda inner: [inner.op("Identity", raw)])
    # The same weights inside a branch.
    inner = Model()
    used = inner.op("Conv", z, w)
    no = helper.make_graph(inner.nodes, "no", [], [helper.make_empty_tensor_value_info(used)])
    m.keep(m.op("If", m.feed(np.bool_(False)), then_branch=yes, else_branch=no))
    normed, other, kept, chosen = m.run()
    check(kept, conv_reference(xv, wv), 1e-4, 1e-5)
    check(other, conv_reference(zv, wv), 1e-4, 1e-5)
    check(chosen, other, 1e-4, 1e-5)
    check(normed, batch_norm(conv_reference(xv, wv), *stats), 1e-3, 1e-3)


def attention(m: Model, q: str, k: str, v: str, mask: str) -> str:
    """Scaled scores plus a mask, softmax, weighted values: as exporters write it."""
    scores = m.op("Mul", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2])),
                  m.const(np.float32(0.5)))  # fmt: skip
    return str(m.op("MatMul", m.op("Softmax", m.op("Add", scores, mask)), v))


def test_b29_a_row_that_is_masked_whole():
    m = Model()
    ones = m.feed(np.ones((1, 1, 2, 4), np.float32))
    for hidden in (-np.inf, -10000, -1e9, np.finfo(np.float32).min):
        mask = np.zeros((1, 1, 2, 2), np.float32)
        mask[..., 1, :] = hidden
        m.keep(attention(m, ones, ones, ones, m.const(mask)))
    infinite, *finite = m.run()
    check(infinite[0, 0, 0], np.ones(4))
    assert np.isnan(infinite[0, 0, 1]).all()
    for got in finite:
        check(got[0, 0], np.ones((2, 4)))


def test_b29_attention_is_what_its_parts_are():
    q, k, v = normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8)
    mask = np.where(RNG.random((2, 1, 5, 7)) < 0.3, np.float32(-np.inf), np.float32(0))
    mask[..., 0] = 0
    m = Model()
    m.keep(attention(m, m.feed(q), m.feed(k), m.feed(v), m.feed(mask)))
    scores = np.einsum("bhmd,bhnd->bhmn", q, k) * 0.5 + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    want = np.einsum("bhmn,bhnd->bhmd", e / e.sum(-1, keepdims=True), v)
    check(m.run()[0], want, 1e-4, 1e-5)


def test_b30_byte_products_do_not_saturate():
    m = Model()
    m.keep(m.op("MatMulInteger", m.feed(np.full((1, 64), 255, np.uint8)),
                m.const(np.full((64, 1), 127, np.int8))))  # fmt: skip
    one, zero, big = m.const(np.float32(1)), m.const(np.uint8(0)), m.const(np.float32(1000))
    weights = m.const(np.array([114, 113], np.int8).reshape(1, 2, 1, 1))
    m.keep(m.op("QLinearConv", m.feed(np.full((1, 2, 1, 1), 255, np.uint8)), one, zero, weights,
                one, m.const(np.int8(0)), big, zero))  # fmt: skip
    product, code = m.run()
    assert product.item() == 2072640 and code.item() == 58


def test_b30_every_depth_is_exact():
    m, wants = Model(), []
    for k in (1, 2, 3, 15, 16, 17, 31, 64, 67):
        a, b = RNG.integers(0, 256, (3, k), np.uint8), RNG.integers(-128, 128, (k, 5)).astype("i1")
        zero = m.const(np.uint8(7))
        m.keep(m.op("MatMulInteger", m.feed(a), m.const(b), zero))
        wants.append((a.astype(np.int32) - 7) @ b.astype(np.int32))
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, want)


def test_b32_byte_softmax_saturates():
    m = Model()
    x = m.feed(np.array([[127, -128, -128, -128]], np.int8))
    real = m.op("DequantizeLinear", x, m.const(np.float32(0.2)), m.const(np.int8(0)))
    soft = m.op("Softmax", real)
    m.keep(m.op("QuantizeLinear", soft, m.const(np.float32(1 / 256)), m.const(np.int8(-128))))
    np.testing.assert_array_equal(m.run()[0], [[127, -128, -128, -128]])


def counting_loop(m: Model, trip: Any, k: str, stop_above: float | None = None) -> list[str]:
    """v' = v + k; stacks v and the number of the iteration."""
    body = Model()
    node = body.node
    node("Identity", ["v"], ["scan1"])
    node("Identity", ["iter"], ["scan2"])
    node("Add", ["v", k], ["next"])
    if stop_above is None:
        node("Identity", ["cond"], ["goes_on"])
    else:
        node("Less", ["next", body.const(np.full(1, stop_above, np.float32))], ["below"])
        node("Squeeze", ["below"], ["goes_on"])
    kinds = {"v": (1, [1]), "cond": (9, []), "iter": (7, [])}
    inputs = [helper.make_tensor_value_info(n, *kinds[n]) for n in ("iter", "cond", "v")]
    scans = ["scan1", "scan2"] if stop_above is None else []
    outs = [helper.make_empty_tensor_value_info(n) for n in ("goes_on", "next", *scans)]
    graph = helper.make_graph(body.nodes, "body", inputs, outs, body.constants)
    count = m.const(np.int64(trip)) if isinstance(trip, int) else trip
    start = m.feed(f32([10]))
    found = m.op("Loop", count, None, start, outputs=1 + len(scans), body=graph)
    return found if isinstance(found, list) else [found]


def test_b34_scans_hold_their_own_step():
    m = Model()
    k = m.feed(f32([2]))
    m.keep(*counting_loop(m, 3, k), *counting_loop(m, 0, k), *counting_loop(m, 9, k, 15))
    final, values, steps, unmoved, none, never, stopped = m.run()
    check(final, [16])
    check(values, [[10], [12], [14]])
    check(steps.ravel(), [0, 1, 2])
    check(unmoved, [10])
    assert none.shape == (0, 1) and never.shape[0] == 0
    check(stopped, [16])


def test_b36_reshape_by_a_shape_of_the_run_is_right_or_refused():
    for wanted in ([2, -1], [0, -1], [-1], [4, 0, 2], [5, -1]):
        m = Model()
        m.keep(m.op("Reshape", m.feed(arange(2, 3, 4)), m.feed(np.array(wanted, np.int64))))
        try:
            (got,) = m.run()
        except Error:
            continue
        assert wanted != [5, -1]
        check(got, arange(2, 3, 4).reshape([d or (2, 3)[i] for i, d in enumerate(wanted)]))


def test_b36_reshape_of_dims_that_do_not_divide():
    m = Model()
    x = m.feed(arange(4, 3), dims=["n", 3])
    m.keep(m.op("Reshape", x, m.const([-1, 2], np.int64)))
    engine = m.engine()
    check(outputs_of(m, engine)[0], arange(6, 2))
    with pytest.raises(Error):
        outputs_of(m, engine, {x: arange(3, 3)})
    check(outputs_of(m, engine, {x: arange(2, 3)})[0], arange(3, 2))


def test_b37_heads_are_split_by_dims_of_the_run():
    m = Model()
    x = m.feed(arange(2, 5, 12), dims=["B", "S", 12])
    flat = m.op("Reshape", x, m.const([-1, 12], np.int64))
    shape = m.op("Shape", x)
    parts = [m.op("Unsqueeze", m.op("Gather", shape, m.const(i, np.int64)), m.const([0], np.int64))
             for i in (0, 1)]  # fmt: skip
    heads = m.op("Concat", *parts, m.const([3], np.int64), m.const([4], np.int64), axis=0)
    m.keep(m.op("Transpose", m.op("Reshape", flat, heads), perm=[0, 2, 1, 3]))
    table = m.op("Concat", m.op("Reshape", x, m.const([-1, 12], np.int64)),
                 m.const(arange(3, 12) + 0.5), axis=0)  # fmt: skip
    index = m.feed(np.array([0, -1], np.int64), dims=["I"])
    m.keep(m.op("Gather", table, index, axis=0))
    m.keep(m.op("GatherND", m.const(arange(5, 3)),
                m.feed(np.zeros((2, 3, 1), np.int64), dims=["P", "Q", 1])))  # fmt: skip
    engine = m.engine()
    for b, s in ((1, 1), (2, 5), (7, 1), (1, 128)):
        data, pick = arange(b, s, 12), np.array([0, b * s + 2, -1], np.int64)
        tuples = np.full((b, s, 1), 4, np.int64)
        names = [i.name for i in m.inputs]
        got = outputs_of(m, engine, dict(zip(names, (data, pick, tuples), strict=True)))
        check(got[0], data.reshape(b, s, 3, 4).transpose(0, 2, 1, 3))
        rows = np.concatenate([data.reshape(-1, 12), arange(3, 12) + 0.5])
        check(got[1], rows[pick])
        check(got[2], np.broadcast_to(arange(5, 3)[4], (b, s, 3)))


def test_b54_absent_inputs_scalars_and_functions():
    m = Model()
    x = m.feed(arange(4))
    m.keep(m.op("Pad", x, m.const([1, 0], np.int64), None))
    scale, zero = m.const(np.float32(0.5)), m.const(np.uint8(3))
    m.keep(m.op("DequantizeLinear", m.op("QuantizeLinear", x, scale, zero), scale, zero))
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Mul", ["a", "two"], ["b"]),
        helper.make_node("LeakyRelu", ["b"], ["c"]),
    ]
    reference = AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    nodes[2].attribute.append(reference)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    inner = helper.make_function("local", "Scaled", ["a"], ["c"], nodes, opsets, ["slope"])
    call = helper.make_node("Scaled", ["p"], ["q"], domain="local", slope=0.25)
    outer = helper.make_function(
        "local", "Outer", ["p"], ["r"],
        [call, helper.make_node("Neg", ["q"], ["r"])], opsets,
    )  # fmt: skip
    m.functions += [inner, outer]
    m.keep(m.op("Outer", m.op("Neg", x), domain="local"))
    ids = m.const(arange(1, 8, dtype=np.int64))
    length = m.op("Gather", m.op("Shape", x), m.const([0], np.int64))
    m.keep(m.op("Slice", ids, m.const([0], np.int64), length, m.const([1], np.int64)))
    padded, same, called, positions = m.run()
    check(padded, [0, 0, 1, 2, 3])
    check(same, arange(4))
    check(called, arange(4) / 2)
    check(positions, [[0, 1, 2, 3]])
