"""docs/troubleshooting.md: each message is what is raised. Those of torch: the slow tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import cuvil
from cuvil.aot import link
from cuvil.targets import registry
from tests.documents.trouble_entries import (
    BY_TORCH,
    CHAPTERS,
    Provoke,
    assert_raised,
    assert_said,
    entries,
)

JIT = "Functions of `@cuvil.jit`"
MESSAGES = entries(*(c for c in CHAPTERS if c not in (*BY_TORCH, JIT)))
EXPLANATIONS = entries(JIT)
PROVOKED: dict[str, Callable[[pytest.MonkeyPatch], Provoke]] = {}

ADD = "net (float[N, 4] x, float[N, 4] y) => (float[N, 4] z) { z = Add(x, y) }"
CUSTOM = "net (float[N] x) => (float[N] y) { [whirl] y = com.acme.Swirl(x) }"
PRODUCT = """net (float[N, 2] x) => (float[N, 2] z) {
  w = Constant<value = float[2, 2] {1.0, 2.0, 3.0, 4.0}>() z = MatMul(x, w) }"""
GATHER = "net (float[4] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }"
IMAGE = "net (uint8[N] x) => (uint8[H, W, C] y) { [decode] y = ImageDecoder(x) }"


def model(graph: str) -> onnx.ModelProto:
    """A model of a graph in text."""
    header = '<ir_version: 8, opset_import: ["" : 20, "com.acme" : 1]>\n'
    return parse_model(header + graph)


def compiled(graph: str, **options: object) -> object:
    """An engine of a file model.onnx."""
    onnx.save(model(graph), "model.onnx")
    return cuvil.compile("model.onnx", **options)  # type: ignore[call-overload]


def library(weights: str = "embed", target: str = "cpu") -> Path:
    """build/libnet.so of a model with weights."""
    onnx.save(model(PRODUCT), "net.onnx")
    compiler = cuvil.Compiler.load("net.onnx").optimize(target=target)
    compiler.compile(output_path="build/libnet.so", weights=weights)
    return Path("build/libnet.so")


def entry(heading: str) -> Callable[[Callable[[pytest.MonkeyPatch], object]], None]:
    """Registers what raises an entry's message, in an empty folder."""

    def register(provoke: Callable[[pytest.MonkeyPatch], object]) -> None:
        PROVOKED[heading] = lambda patch: lambda: provoke(patch)

    return register


entry("An operator that Cuvil does not have")(lambda _: compiled(IMAGE))
entry("A custom operator")(lambda _: compiled(CUSTOM))
entry("A type that is not supported")(
    lambda _: compiled("net (complex64[N] x) => (complex64[N] y) { y = Identity(x) }")
)
entry("A type that an operator does not take")(
    lambda _: compiled("net (bool[N] x) => (bool[N] y) { [minus] y = Neg(x) }")
)


@entry("A custom operator without code")
def _(patch: pytest.MonkeyPatch) -> None:
    operator = cuvil.custom_op("com.acme::Swirl", inputs=["x: f32"], outputs=["y: f32"])
    operator.shape(lambda x: x)
    operator.reference(lambda x: x)
    try:
        compiled(CUSTOM)
    finally:
        operator.remove()


@entry("A custom operator that is used otherwise than declared")
def _(patch: pytest.MonkeyPatch) -> None:
    operator = cuvil.custom_op("com.acme::Swirl", inputs=["a: f32", "b: f32"], outputs=["y: f32"])
    try:
        compiled(CUSTOM)
    finally:
        operator.remove()


@entry("A model without its weights")
def _(patch: pytest.MonkeyPatch) -> None:
    weights = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    proto = model("net (float[N, 4] x, float[4, 4] w) => (float[N, 4] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(weights)
    onnx.save(proto, "model.onnx", save_as_external_data=True, size_threshold=0,
              location="model.bin")  # fmt: skip
    Path("model.bin").unlink()
    cuvil.compile("model.onnx")


@entry("A file that is no model")
def _(patch: pytest.MonkeyPatch) -> None:
    Path("model.onnx").write_text("<html>not found</html>")
    cuvil.compile("model.onnx")


# -- targets ---------------------------------------------------------------------------------------
entry("A target by a wrong name")(lambda _: compiled(ADD, target="x86_65"))
entry("A cpu by a wrong name")(lambda _: compiled(ADD, target="x86_64:skylake-avx51"))
entry("An engine for another machine")(lambda _: compiled(ADD, target="aarch64-linux-gnu"))
entry("A feature by a wrong name")(lambda _: registry.find("x86_64", features="+avx999"))


@entry("A target that nobody serves")
def _(patch: pytest.MonkeyPatch) -> None:
    left = tuple(b for b in registry.backends() if "aarch64-linux-gnu" not in b.triples)
    patch.setattr(registry, "scan", lambda: (left, ()))
    compiled(ADD, target="aarch64-linux-gnu")


@entry("No linker")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(link, "linkers", list)
    library()


# -- calls -----------------------------------------------------------------------------------------
HALF, PLAIN = np.zeros((2, 4)), np.zeros((2, 4), np.float32)
for _heading, _arguments in {
    "Another element type": (HALF, PLAIN),
    "Another rank": (PLAIN[0], PLAIN),
    "Another extent": (np.zeros((2, 5), np.float32), PLAIN),
    "Two extents that must be equal": (np.zeros((3, 4), np.float32), PLAIN),
    "A wrong number of inputs": (PLAIN,),
}.items():
    entry(_heading)(lambda _, given=_arguments: cuvil.compile(model(ADD))(*given))
entry("An input by a wrong name")(lambda _: cuvil.compile(model(ADD))(x=PLAIN, w=PLAIN))
entry("An extent outside of what was promised")(
    lambda _: cuvil.compile(model(ADD), dynamic_shapes={"N": "8..64"})(PLAIN, PLAIN)
)
entry("An index outside of its axis")(
    lambda _: cuvil.compile(model(GATHER))(PLAIN[0], np.array([9]))
)


# -- libraries -------------------------------------------------------------------------------------
@entry("A library that is damaged")
def _(patch: pytest.MonkeyPatch) -> None:
    made = library()
    data = made.read_bytes()
    made.write_bytes(data[: len(data) // 2])
    cuvil.load(made)


@entry("A library of somebody else")
def _(patch: pytest.MonkeyPatch) -> None:
    Path("libnet.so").write_bytes(b"not an ELF file, and nothing that Cuvil wrote")
    cuvil.load("libnet.so")


entry("A library for another processor")(lambda _: cuvil.load(library(target="aarch64-linux-gnu")))


@entry("Weights that are gone")
def _(patch: pytest.MonkeyPatch) -> None:
    library("external").with_name("net.weights").unlink()
    cuvil.load("build")


@entry("Weights of another build")
def _(patch: pytest.MonkeyPatch) -> None:
    weights = library("external").with_name("net.weights")
    weights.write_bytes(weights.read_bytes()[:-8])
    cuvil.load("build")


@pytest.mark.parametrize("heading", MESSAGES)
def test_the_message_is_what_is_raised(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_raised(MESSAGES[heading], PROVOKED[heading](monkeypatch))


def test_nothing_is_provoked_that_the_page_does_not_have() -> None:
    assert set(PROVOKED) == set(MESSAGES)


# -- functions -------------------------------------------------------------------------------------
def explained(heading: str) -> cuvil.Explanation:
    """The explanation of a function that is as the entry says."""
    if heading == "A statement that is not compiled":

        @cuvil.jit
        def total(path):
            with open(path) as file:
                return len(file.read())

        total(__file__)
        return cuvil.explain(total)
    if heading == "Types that keep changing":

        @cuvil.jit
        def first(items):
            return items[0]

        for count in range(1, 12):
            first((1,) * count)
        return cuvil.explain(first)

    @cuvil.jit
    def total(items):
        return sum(items)

    return cuvil.explain(total, [])


@pytest.mark.parametrize("heading", EXPLANATIONS)
def test_the_explanation_is_what_is_said(heading: str) -> None:
    said = str(explained(heading)).replace("explained.<locals>.", "")
    assert_said(EXPLANATIONS[heading].replace("program.py", Path(__file__).name), said)
