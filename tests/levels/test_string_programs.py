"""Random programs on strings mean the same to the interpreter, as plans and as native code."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from cuvil.engine.front_door import compile_engine
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter
from cuvil.options import Options
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import make_plan
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import run_phases

WORDS = ["a", "ab", "é", "straße", "A B", "", "x,y", "été 1", " lead", "a-b-c", "😀", "z" * 40]
PATTERNS = ["a.*", "[a-z]+", r"\w*", "(?i:STRA.E)", ".{1,3}", "é|[^a]*"]
ML = "ai.onnx.ml"


@dataclass
class Program:
    """A graph under construction on x [N, 3]; `shaped` are the strings of this very shape."""

    rng: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    shaped: list[str] = field(default_factory=lambda: ["x"])
    others: list[str] = field(default_factory=list)

    def node(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> str:
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        domain = ML if op == "LabelEncoder" else ""
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attrs))
        return names[0]

    def word(self) -> str:
        return self.rng.choice(WORDS)

    def constant(self, values: Any) -> str:
        """A constant of strings or of numbers."""
        name, array = f"k{len(self.constants)}", np.array(values)
        kind, data = TensorProto.INT64, array.ravel().tolist()
        if array.dtype.kind == "U":
            kind, data = TensorProto.STRING, [text.encode() for text in data]
        self.constants.append(helper.make_tensor(name, kind, array.shape, data))
        return name

    def pick(self) -> str:
        return self.rng.choice(self.shaped)

    def flat(self) -> str:
        return self.node("Reshape", self.pick(), self.constant([-1]))


def _concat(p: Program) -> None:
    other = p.pick() if p.rng.random() < 0.7 else p.constant(p.word())
    p.shaped.append(p.node("StringConcat", p.pick(), other))


def _where(p: Program) -> None:
    same = p.node("Equal", p.pick(), p.rng.choice([p.pick(), p.constant(p.word())]))
    p.shaped.append(p.node("Where", same, p.pick(), p.pick()))


def _normalize(p: Program) -> None:
    action = p.rng.choice(["UPPER", "LOWER", "NONE"])
    words = p.rng.sample(WORDS, p.rng.randint(1, 3))
    exact = p.rng.randint(0, 1)
    attrs = {"case_change_action": action, "is_case_sensitive": exact, "stopwords": words}
    p.others.append(p.node("StringNormalizer", p.flat(), **attrs))


def _split(p: Program) -> None:
    attrs: dict[str, Any] = {"delimiter": p.rng.choice(["", ",", "-", " "])}
    if p.rng.random() < 0.4:
        attrs["maxsplit"] = p.rng.randint(0, 2)
    p.others.append(p.node("StringSplit", p.pick(), outputs=2, **attrs))


def _match(p: Program) -> None:
    p.others.append(p.node("RegexFullMatch", p.pick(), pattern=p.rng.choice(PATTERNS)))


def _label(p: Program) -> None:
    keys, back = p.rng.sample(WORDS, 4), p.rng.sample(WORDS, 3)
    number = p.node("LabelEncoder", p.pick(), keys_strings=keys, values_int64s=[1, 2, 3, 4])
    p.shaped.append(p.node("LabelEncoder", number, keys_int64s=[1, 2, -1], values_strings=back))


def _move(p: Program) -> None:
    turned = p.node("Transpose", p.pick(), perm=[1, 0])
    rows = p.constant(p.rng.choices([0, 1, 2, -1], k=3))
    p.shaped.append(p.node("Transpose", p.node("Gather", turned, rows, axis=0), perm=[1, 0]))


def _pad(p: Program) -> None:
    both = p.node("Concat", p.pick(), p.pick(), axis=1)
    pads = p.constant([1, -p.rng.randint(0, 2), 0, 1])
    p.others.append(p.node("Pad", both, pads, p.constant(p.word())))


def _distinct(p: Program) -> None:
    p.others.append(p.node("Unique", p.flat()))


STEPS: Sequence[Callable[[Program], None]] = (
    _concat, _where, _normalize, _split, _match, _label, _move, _pad, _distinct,
)  # fmt: skip


def random_model(seed: int) -> onnx.ModelProto:
    """Some steps; what nobody reads is an output."""
    p = Program(random.Random(seed))
    for step in p.rng.choices(STEPS, k=6):
        step(p)
    outputs = [onnx.ValueInfoProto(name=n) for n in (*p.others, p.shaped[-1]) if n != "x"]
    x = helper.make_tensor_value_info("x", TensorProto.STRING, ["N", 3])
    graph = helper.make_graph(p.nodes, "words", [x], outputs, p.constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 4)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


@pytest.mark.parametrize("seed", range(6))
def test_all_levels_agree(seed: int, rng: np.random.Generator) -> None:
    source = random_model(seed)
    native = compile_engine(import_model(source), Options())
    graph = import_model(source)
    planned = import_model(source)
    run_phases(planned)
    plan = make_plan(planned)
    verify_plan(plan)
    words = np.array([*WORDS, None], object)[:-1]
    for count in (0, 1, 5):
        feeds = {"x": words[rng.integers(0, len(words), (count, 3))]}
        meaning = interpreter.run(graph, feeds)
        for found in (
            run_plan(plan, feeds),
            dict(zip(meaning, native.run(None, feeds), strict=True)),
        ):
            for name, value in meaning.items():
                assert found[name].dtype == value.dtype and found[name].shape == value.shape
                assert found[name].tolist() == value.tolist()
