"""Suppression, folding, loops and byte products by kind: rows B18, B27, B30, B34 and B54."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.errors import TargetError
from cuvil.options import Options
from cuvil_runtime import load
from tests.faults.cases import FORMS, Array, Model, arange, branch, check, f32, outputs_of

RNG = np.random.default_rng(18)
BOXES = f32([[0, 0, 1, 1], [0, 0, 0.9, 0.9], [0, 10, 1, 11]])
SCORES = f32([0.9, 0.8, 0.7])


def centred(boxes: Array) -> Array:
    """Corners as centre, width and height."""
    y1, x1, y2, x2 = boxes.T
    return np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], -1)


def suppressed(boxes: Array, scores: Array, most: int, iou: float, least: float) -> list[list[int]]:
    """Rows (batch, class, box), by the definition."""
    found = []
    for b, k in np.ndindex(scores.shape[:2]):
        kept: list[int] = []
        for i in np.argsort(-scores[b, k], kind="stable"):
            if len(kept) >= most or scores[b, k, i] <= least:
                continue
            if all(_overlap(boxes[b, i], boxes[b, j]) <= iou for j in kept):
                kept.append(int(i))
        found += [[b, k, i] for i in kept]
    return found


def _overlap(a: Array, b: Array) -> float:
    size = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0).prod()
    whole = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - size
    return float(size / whole) if whole > 0 else 0.0


@pytest.mark.parametrize(("form", "rank"), [("fixed", 0), *((form, 1) for form in FORMS)])
def test_b18_suppression(rank: int, form: str) -> None:
    m, wants = Model(17, form), []

    def scalar(value: Any, dtype: str) -> str:
        return m.const(np.full([1] * rank, value, dtype))

    def add(boxes: Array, scores: Array, most: int | None, iou: float, least: float, centre: int):
        given = np.stack([centred(b) for b in boxes]) if centre else boxes
        count = None if most is None else scalar(most, "i8")
        m.keep(m.op("NonMaxSuppression", m.feed(given), m.feed(scores), count, scalar(iou, "f4"),
                    scalar(least, "f4"), center_point_box=centre))  # fmt: skip
        wants.append(suppressed(boxes, scores, most or 0, iou, least))

    two = np.stack([BOXES, BOXES[::-1]])
    scores = np.stack([SCORES[None], SCORES[::-1][None]])
    for centre in (0, 1):
        add(BOXES[None], SCORES[None, None], None, 0.5, 0, centre)
        add(BOXES[None], SCORES[None, None], 0, 0.5, 0, centre)
        add(two, scores, 10, 0.5, 0, centre)
        add(two, scores, 1, 0.9, 0.75, centre)
        corner = RNG.random((2, 20, 2)) * 10
        boxes = np.concatenate([corner, corner + 1 + 4 * RNG.random((2, 20, 2))], -1).astype("f4")
        add(boxes, RNG.random((2, 3, 20)).astype("f4"), 6, 0.3, 0.2, centre)
    for got, want in zip(m.run(), wants, strict=True):
        np.testing.assert_array_equal(got, np.reshape(want, (-1, 3)))


def test_b18_the_printed_row() -> None:
    m = Model(17)
    boxes, scores = m.feed(np.stack([BOXES, BOXES[::-1]])), m.feed(np.stack([SCORES[None]] * 2))
    m.keep(m.op("NonMaxSuppression", boxes, scores, m.const([10], np.int64), m.const([0.5], "f4")))
    np.testing.assert_array_equal(m.run()[0], [[0, 0, 0], [0, 0, 2], [1, 0, 0], [1, 0, 1]])


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_b27_weights_that_others_use(level: int) -> None:
    """Conv and MatMul with a norm or scale behind, whose weights and results have other users."""
    m = Model(17)
    image, w = RNG.standard_normal((1, 2, 4, 4)).astype("f4"), RNG.standard_normal((3, 2, 1, 1))
    x, weights = m.feed(image), m.const(w, np.float32)
    one, mean = m.const(np.ones(3, "f4")), m.const(f32([1, 2, 3]))
    raw = m.op("Conv", x, weights)
    m.keep(m.op("BatchNormalization", raw, one, mean, mean, m.const(f32([0, 1, 4]))), raw)
    m.keep(m.op("Mul", m.op("Conv", x, weights), m.const(f32([2, 3, 4]).reshape(3, 1, 1))))
    flat, square = m.feed(arange(2, 3)), m.const(arange(3, 3))
    product = m.op("MatMul", flat, square)
    m.keep(m.op("Add", m.op("Mul", product, m.const(f32([2, 3, 4]))), mean), product)
    m.keep(m.op("MatMul", square, square), weights, square)
    inside = branch("b", lambda b: [b.op("Mul", raw, b.const(np.float32(2)))])
    m.keep(m.op("If", m.feed(np.bool_(True)), then_branch=inside, else_branch=inside))
    conv = np.einsum("nihw,oi->nohw", image, w[:, :, 0, 0].astype("f4"))
    shift = f32([1, 2, 3]).reshape(3, 1, 1)
    deviation = np.sqrt(f32([0, 1, 4]) + np.float32(1e-5)).reshape(3, 1, 1)
    dot = arange(2, 3) @ arange(3, 3)
    wants = [(conv - shift) / deviation + shift, conv, conv * f32([2, 3, 4]).reshape(3, 1, 1),
             dot * [2, 3, 4] + [1, 2, 3], dot, arange(3, 3) @ arange(3, 3), w, arange(3, 3),
             2 * conv]  # fmt: skip
    for got, want in zip(m.run(opt_level=level), wants, strict=True):
        check(got, want, 1e-3, 1e-3)


def byte_products() -> tuple[Model, list[Array]]:
    """Sums of products that 16 bits do not hold, of every depth about a vector's."""
    m, wants = Model(17), []
    for k in (1, 2, 3, 4, 7, 15, 16, 17, 31, 33, 64, 67):
        for left in ("u1", "i1"):
            kind = np.iinfo(left)
            a = np.full((5, k), kind.max if left == "u1" else kind.min, left)
            b = np.tile(np.array([127, -128, 3], "i1"), (k, 1))
            m.keep(m.op("MatMulInteger", m.feed(a), m.const(b)))
            wants.append(a.astype("i4") @ b.astype("i4"))
            x = m.feed(a.reshape(1, 5, k, 1).transpose(0, 2, 1, 3).copy())
            w = m.const(b.T.reshape(3, k, 1, 1).copy())
            m.keep(m.op("ConvInteger", x, w))
            wants.append((a.astype("i4") @ b.astype("i4")).T[None, :, :, None])
    return m, wants


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, list[Array], Artefact]:
    m, wants = byte_products()
    folder = tmp_path_factory.mktemp("products")
    return m, wants, compile_to_folder(m.proto(), folder, Options(target="x86_64"))


@pytest.mark.parametrize("variant", [None, "avx512", "avx2", "baseline"])
def test_b30_byte_products_of_every_variant(variant: str | None, products: Any) -> None:
    m, wants, made = products
    try:
        model = load(str(made.library), threads=1, variant=variant)
    except TargetError:
        pytest.skip("this cpu lacks it")
    for got, want in zip(model.run(list(m.feeds.values())), wants, strict=True):
        np.testing.assert_array_equal(got, want)


def growing(form: str) -> Model:
    """A loop that carries what grows by a row of each step, and stacks what was before."""
    m, body = Model(17, form), Model(17)
    row = m.feed(f32([[1, 2]]))
    body.node("Concat", ["v", row], ["longer"], axis=0)
    body.node("ReduceSum", ["v"], ["total"], keepdims=0)
    body.node("Less", ["total", body.const(f32(8.5))], ["on"])
    kinds = {"i": (7, []), "go": (9, []), "v": (1, ["r", 2])}
    inputs = [helper.make_tensor_value_info(n, *kind) for n, kind in kinds.items()]
    outs = [helper.make_empty_tensor_value_info(n) for n in ("on", "longer", "total")]
    graph = helper.make_graph(body.nodes, "body", inputs, outs, body.constants)
    count, start = m.feed(np.int64(9)), m.feed(np.zeros((1, 2), "f4"))
    m.keep(*m.op("Loop", count, m.feed(np.bool_(True)), start, outputs=2, body=graph))
    return m


@pytest.mark.parametrize("form", ["fixed", "symbolic", "library"])
def test_b34_a_carried_tensor_that_grows(form: str) -> None:
    m = growing(form)
    engine = m.engine()
    for trips, go, steps in ((9, True, 4), (2, True, 2), (0, True, 0), (9, False, 0)):
        values = [m.feeds[i.name] for i in m.inputs]
        values[1], values[3] = np.array(trips), np.array(go)
        feeds = dict(zip((i.name for i in m.inputs), values, strict=True))
        grown, totals = outputs_of(m, engine, feeds)
        check(grown, np.concatenate([np.zeros((1, 2)), np.tile(f32([[1, 2]]), (steps, 1))]))
        check(totals, 3.0 * np.arange(steps))


@pytest.mark.parametrize("form", FORMS)
def test_b54_functions_are_what_their_inlined_nodes_are(form: str) -> None:
    """Nested, with defaults and references to attributes, an absent input and output."""
    m = Model(17, form)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    pad = helper.make_node("Pad", ["x", "pads", ""], ["y"])
    norm = helper.make_node("Dropout", ["y"], ["z", ""])
    slope = helper.make_node("LeakyRelu", ["z"], ["w"])
    slope.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="a", type=1))
    inner = helper.make_function("local", "Inner", ["x", "pads"], ["w"], [pad, norm, slope], opsets,
                                 attributes=["a"])  # fmt: skip
    call = helper.make_node("Inner", ["x", "p"], ["y"], domain="local")
    call.attribute.append(onnx.AttributeProto(name="a", ref_attr_name="b", type=1))
    outer = helper.make_function("local", "Outer", ["x", "p"], ["y"], [call], opsets, ["b"])
    m.functions += [inner, outer]
    x, pads = m.feed(f32([-4, 8])), m.const([1, 1], np.int64)
    m.keep(m.op("Outer", x, pads, domain="local", b=0.5), m.op("Inner", x, pads, domain="local"))
    m.keep(m.op("Inner", x, pads, domain="local", a=0.25))
    half, default, quarter = m.run()
    check(half, [0, -2, 8, 0])
    check(default, [0, -0.04, 8, 0])
    check(quarter, [0, -1, 8, 0])
