"""The text of every level parses back to the same text; damaged text is refused with its place."""

from __future__ import annotations

import random
import re
from functools import lru_cache

import pytest
from levels.examples import EXAMPLES, plan_text

import cuvil.ops
from cuvil.errors import ModelError
from cuvil.ir.text import parse_ir, print_ir
from cuvil.plan.plan import make_plan
from cuvil.rewrite.engine import RewriteOptions, run_phases

assert cuvil.ops is not None


@lru_cache
def texts(name: str) -> dict[str, str]:
    """The text of an example at every level, by level."""
    graph, found = EXAMPLES[name].graph(), {}
    found["imported"] = print_ir(graph.module, locations=True)
    run_phases(
        graph, RewriteOptions(after_phase=lambda p, g: found.update({p: print_ir(g.module)}))
    )
    found["host and nest"] = plan_text(make_plan(graph))
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_text_comes_back(name: str) -> None:
    for level, text in texts(name).items():
        module = parse_ir(text)
        if level == "host and nest":
            again = "".join(print_ir(op) for op in module.body.block.ops)
        else:
            again = print_ir(module, locations=level == "imported")
        assert again == text, level


@pytest.mark.parametrize("name", ["conv_relu_residual", "loop", "symbolic"])
def test_damage_is_refused_with_its_place(name: str) -> None:
    rng = random.Random(1)
    for text in (texts(name)["layout"], texts(name)["host and nest"]):
        for _ in range(40):
            wrong = damaged(text, rng)
            try:
                parse_ir(wrong, "model.mlir")
            except ModelError as error:  # nothing else is raised
                assert re.match(r"model\.mlir(:\d+:\d+)?: \S", str(error))


def damaged(text: str, rng: random.Random) -> str:
    """Cut off, or with a piece left out, doubled or replaced."""
    at, length = rng.randrange(len(text)), rng.choice((1, 1, 3, 20))
    piece = text[at : at + length]
    other = rng.choice(["", "", 2 * piece, rng.choice('"<>[](){}%#!,:=-09abz*\0é')])
    return text[:at] + (other + text[at + length :] if rng.random() < 0.9 else "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"cuvil.softmix"() : () -> ()', "m.mlir:1:16: Operation cuvil.softmix is not registered"),
        ('%0 = "host.argument"() <{index = "x', "m.mlir:1:34: a string that does not end"),
        ('%0 = "nest.dim"() <{expr = #cuvil.dims<[B, +]>}>', "m.mlir:1:46: dimension '+'"),
        ('"cuvil.neg"() : () -> !cuvil.tensor<[2], f31>', "unknown element type 'f31'"),
    ],
)
def test_messages(text: str, said: str) -> None:
    with pytest.raises(ModelError) as info:
        parse_ir(text, "m.mlir")
    assert said in str(info.value)
