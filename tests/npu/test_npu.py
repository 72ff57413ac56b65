"""examples/backend_npu: a backend of somebody else's, by nothing but the public contract."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import onnx
import pytest
from npu.conftest import EXAMPLE

import cuvil
from cuvil.engine.engine import Engine
from cuvil.errors import ArtefactError, RuntimeFailure, TargetError
from cuvil.frontends.onnx import import_model
from cuvil.ops.interpreter import run as interpret
from cuvil.targets import registry
from tests import small_models
from tools.models.zoo import get

Feeds = dict[str, np.ndarray[Any, Any]]
CODE = {".py", ".c", ".h"}


def on_npu(engine: Engine, feeds: Feeds) -> list[str]:
    """The nodes that the chip computes in a run, in order; the results are checked elsewhere."""
    return [row.nodes for row in engine.profile(feeds)[1] if row.kernel.startswith("npu")]


def agrees(engine: Engine, source: Any, feeds: Feeds, tolerance: float = 1e-5) -> None:
    want = interpret(import_model(source), feeds)
    for port, got in zip(engine.get_outputs(), engine.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want[port.name], rtol=tolerance, atol=tolerance)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.standard_normal(shape, np.float32)


def model(text: str, **constants: np.ndarray[Any, Any]) -> onnx.ModelProto:
    made = small_models.model(text)
    arrays = [onnx.numpy_helper.from_array(a, name) for name, a in constants.items()]
    made.graph.initializer.extend(arrays)
    return made


def test_a_real_network_of_convolutions() -> None:
    """Which way up a line of text is: 53 convolutions and a product on the chip, the rest here."""
    case = get("ocr-cls")
    engine, feeds = cuvil.compile(str(case.path), target="npu,cpu"), case.inputs()
    agrees(engine, str(case.path), feeds)
    kinds = {n.name: n.op_type for n in onnx.load(case.path).graph.node}
    taken = [kinds[name] for name in on_npu(engine, feeds)]
    assert set(taken) == {"Conv", "MatMul"}
    assert taken.count("Conv") == list(kinds.values()).count("Conv")


@pytest.mark.parametrize("batch", [4, "B"])
def test_an_mlp(batch: int | str, rng: np.random.Generator) -> None:
    """Whether a product is large is known at compile time or assumed; the host takes small ones."""
    source = model(
        f"mlp (float[{batch}, 32] x) => (float[{batch}, 4] y) "
        "{ h = MatMul(x, w)  s = Add(h, b)  r = Relu(s)  t = MatMul(r, v)  y = Softmax(t) }",
        w=floats(rng, 32, 64), b=floats(rng, 64), v=floats(rng, 64, 4),
    )  # fmt: skip
    source.graph.node[0].name, source.graph.node[3].name = "first", "second"
    engine = cuvil.compile(source, target="npu,cpu")
    for rows in (4,) if batch == 4 else (4, 1, 0, 33):
        agrees(engine, source, {"x": floats(rng, rows, 32)}, 1e-4)
    assert on_npu(engine, {"x": floats(rng, 4, 32)}) == ["first", "second"]


def test_a_small_product_is_cheaper_on_the_host(rng: np.random.Generator) -> None:
    source = model("f (float[4, 8] x) => (y) { y = MatMul(x, w) }", w=floats(rng, 8, 16))
    engine = cuvil.compile(source, target="npu,cpu")
    assert not on_npu(engine, {"x": floats(rng, 4, 8)})


CONVOLUTIONS = {
    "plain": ("[2, 8, 9, 11]", (8, 8, 3, 3), "group = 1"),
    "strided": ("[1, 8, 9, 11]", (8, 8, 3, 2), "strides = [2, 3], pads = [1, 0, 1, 1]"),
    "dilated": ("[1, 8, 9, 11]", (8, 8, 3, 3), "dilations = [2, 3], pads = [2, 3, 2, 3]"),
    "groups": ("[1, 8, 9, 11]", (12, 2, 3, 3), "group = 4"),
    "depthwise": ("[1, 8, 9, 11]", (8, 1, 3, 3), "group = 8, pads = [1, 1, 1, 1]"),
    "open": ("[N, 8, H, W]", (8, 8, 3, 3), 'auto_pad = "SAME_UPPER", strides = [2, 2]'),
}


@pytest.mark.parametrize("fusion", [True, False], ids=["rules", "no rules"])
@pytest.mark.parametrize("form", CONVOLUTIONS)
def test_convolutions(form: str, fusion: bool, rng: np.random.Generator) -> None:
    """Without rules channels come first: the chip takes strides, so it need not know."""
    dims, weights, attributes = CONVOLUTIONS[form]
    source = model(
        f"f (float{dims} x) => (y) {{ y = Conv<{attributes}>(x, w) }}", w=floats(rng, *weights)
    )
    source.graph.node[0].name = "conv"
    engine = cuvil.compile(source, target="npu,cpu", enable_graph_fusion=fusion)
    feeds = {"x": floats(rng, 1 if dims[1] == "1" else 2, 8, 9, 11)}
    agrees(engine, source, feeds, 1e-4)
    assert on_npu(engine, feeds) == ["conv"]


@pytest.mark.parametrize(
    "dims", ["[2, 3, 16, 24], float[2, 3, 24, 8]", "[A, B, M, K], float[K, N]"]
)
def test_batches_of_products(dims: str, rng: np.random.Generator) -> None:
    source = model(f"f (float{dims} b) => (c) {{ c = MatMul(a, b) }}".replace("], f", "] a, f", 1))
    engine = cuvil.compile(source, target="npu,cpu")
    right = (24, 8) if "K" in dims else (2, 3, 24, 8)
    feeds = {"a": floats(rng, 2, 3, 16, 24), "b": floats(rng, *right)}
    agrees(engine, source, feeds, 1e-4)
    assert len(on_npu(engine, feeds)) == 1


def test_what_the_chip_cannot_compute_stays_here(rng: np.random.Generator) -> None:
    """Other types, three spatial axes and sums over two axes have no instruction."""
    source = model(
        "f (double[32, 32] a, float[1, 4, 6, 6, 6] b, float[4, 8, 16] c) => (x, y, z) "
        "{ x = MatMul(a, a)  y = Conv(b, w)"
        '  z = Einsum<equation = "ijk,ijl->kl">(c, c) }',
        w=floats(rng, 4, 4, 3, 3, 3),
    )
    engine = cuvil.compile(source, target="npu,cpu")
    feeds = {"a": rng.standard_normal((32, 32)), "b": floats(rng, 1, 4, 6, 6, 6)}
    feeds["c"] = floats(rng, 4, 8, 16)
    agrees(engine, source, feeds, 1e-4)
    assert not on_npu(engine, feeds)


def test_threads_share_a_chip(rng: np.random.Generator) -> None:
    source = model("f (float[N, 64] x) => (y) { y = MatMul(x, w) }", w=floats(rng, 64, 64))
    engine = cuvil.compile(source, target="npu,cpu")
    inputs = [floats(rng, 1 + i % 5, 64) for i in range(40)]
    (w,) = (onnx.numpy_helper.to_array(t) for t in source.graph.initializer)
    with ThreadPoolExecutor(4) as pool:
        for x, y in zip(inputs, pool.map(engine, inputs), strict=True):
            np.testing.assert_allclose(y, x @ w, rtol=1e-4, atol=1e-4)


def test_names_are_checked() -> None:
    with pytest.raises(TargetError, match=r"unknown cpu 'npu-v3' .* did you mean 'npu-v2'"):
        registry.find("npu:npu-v3")


def test_a_backend_of_another_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    record = import_module("cuvil_backend_npu").BACKEND
    object.__setattr__(record, "api_version", 9)
    try:
        entry = EntryPoint("npu", "cuvil_backend_npu:BACKEND", registry.GROUP)
        with pytest.raises(TargetError) as caught:
            registry.load_backend(entry)
        assert str(caught.value) == (
            "backend 'npu' speaks version 9 of the backend contract, this cuvil 1: upgrade one of "
            "them (pip install -U cuvil cuvil_backend_npu)"
        )
        registry.scan.cache_clear()
        with pytest.raises(TargetError, match=r"unknown target 'npu'.*speaks version 9"):
            registry.find("npu")
    finally:
        object.__setattr__(record, "api_version", registry.API_VERSION)


PRODUCT = "f (float[8, 64] x) => (y) { y = MatMul(x, x2) }"


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("VERSION", 3, "instructions of version 3, not 2"),
        ("MAGIC", 7, "code for npu-v2, not for npu-v2"),
    ],
)
def test_code_for_another_chip(
    part: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(import_module("cuvil_backend_npu.assembler"), part, value)
    with pytest.raises(ArtefactError, match=f"on device 'npu': contract: {reason}"):
        cuvil.compile(model(PRODUCT, x2=floats(rng, 64, 64)), target="npu,cpu")


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [("GEMM", 9, "no instruction 9"), ("END", 1, "the program ends too early")],
)
def test_a_fault_of_the_chip_names_the_node(
    part: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(import_module("cuvil_backend_npu.assembler"), part, value)
    source = model(PRODUCT, x2=floats(rng, 64, 64))
    source.graph.node[0].name = "product"
    engine = cuvil.compile(source, target="npu,cpu")
    for _ in range(2):  # the queue goes on
        with pytest.raises(RuntimeFailure, match=f"product: device 'npu': {reason}"):
            engine(floats(rng, 8, 64))


def test_the_code_is_short() -> None:
    files = [p for p in EXAMPLE.rglob("*") if p.suffix in CODE and "build" not in p.parts]
    texts = [re.sub(r"/\*.*?\*/", "", p.read_text(), flags=re.DOTALL) for p in files]
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    assert len(files) == 6 and len(lines) < 600
