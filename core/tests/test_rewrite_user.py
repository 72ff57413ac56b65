"""Fusions named by users: found in whatever form the rules leave, or the nearest miss told."""

from __future__ import annotations

from typing import Any

import pytest

import cuvil.ops
from cuvil import op
from cuvil.errors import OptionError
from cuvil.ir.graph import Graph
from cuvil.ir.text import parse_ir, print_ir
from cuvil.rewrite.engine import run_phases
from cuvil.rewrite.rule import case, sample
from cuvil.rewrite.user import UserPattern, fuse_hint, mark

assert cuvil.ops is not None


def matmul_add_gelu(a: Any, b: Any, c: Any) -> Any:
    return op.gelu(op.matmul(a, b) + c)


def spelled_out(b: Any, x: Any) -> Any:
    """What an exporter makes of gelu(x @ w + c)."""
    y = b.add(b.const(sample(20)), b.contract(x, b.const(sample(4, 20)), spec="bsk,kn->bsn"))
    erf = b.erf(b.div(y, b.scalar(1.4142135, y)))
    return b.mul(b.mul(y, b.add(erf, b.scalar(1, y))), b.scalar(0.5, y))


def rewritten(build: Any, **inputs: str) -> Graph:
    graph = case(build, **inputs).graph()
    run_phases(graph)
    return graph


def test_ops_of_a_match_carry_its_name() -> None:
    graph = rewritten(spelled_out, x="[B, S, 4] f32")
    (report,) = mark(graph, [UserPattern("mag", matmul_add_gelu)])
    assert len(report.places) == 1
    hints = {o.name: fuse_hint(o) for o in graph.ops() if hasattr(o, "record")}
    assert hints == {
        "cuvil.constant": None, "cuvil.contract": "mag#0", "cuvil.add": "mag#0",
        "cuvil.gelu": "mag#0",
    }  # fmt: skip
    graph.module.verify()
    parse_ir(print_ir(graph.module))


def test_a_pattern_may_spell_an_activation_out_too() -> None:
    def silu(x: Any) -> Any:
        return x / (1 + op.exp(-x))

    graph = rewritten(lambda b, x: b.mul(x, b.sigmoid(x)), x="[B] f32")
    assert mark(graph, [UserPattern("mine", silu)])[0].places == ["case"]


def test_convolutions_are_met_in_their_layout() -> None:
    def block(x: Any, w: Any, c: Any) -> Any:
        y = op.conv(x, w, strides=(1, 1), dilations=(1, 1), pads=(1, 1, 1, 1))
        return op.relu(y + c)

    attrs = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 1, 1)}
    graph = rewritten(
        lambda b, x: b.relu(b.conv(x, b.const(sample(8, 3, 3, 3)), b.const(sample(8)), **attrs)),
        x="[B, 3, 7, 7] f32",
    )
    (report,) = mark(graph, [UserPattern("block", block)])
    assert len(report.places) == 1, report.nearest


def test_the_nearest_miss_is_told() -> None:
    graph = rewritten(
        lambda b, x, w, c: b.gelu(b.sub(b.contract(x, w, spec="mk,kn->mn"), c)),
        x="[B, 4] f32", w="[4, 5] f32", c="[5] f32",
    )  # fmt: skip
    (report,) = mark(graph, [UserPattern("mag", matmul_add_gelu)])
    assert report.places == []
    assert "1 ops match, but add is expected where sub" in report.nearest


def test_a_value_used_elsewhere_is_not_inside_a_match() -> None:
    def build(b: Any, x: Any, w: Any, c: Any) -> Any:
        y = b.add(b.contract(x, w, spec="mk,kn->mn"), c)
        return b.gelu(y), y

    graph = rewritten(build, x="[B, 4] f32", w="[4, 5] f32", c="[5] f32")
    (report,) = mark(graph, [UserPattern("mag", matmul_add_gelu)])
    assert report.places == []
    assert "used elsewhere" in report.nearest


def test_dtype_limits_a_pattern() -> None:
    graph = rewritten(lambda b, x: b.relu(b.exp(x)), x="[B] f32")
    patterns = [UserPattern(d, lambda x: op.relu(op.exp(x)), d) for d in ("f16", "f32")]
    assert [len(r.places) for r in mark(graph, patterns)] == [0, 1]


def test_a_pattern_that_cannot_be_traced_says_why() -> None:
    with pytest.raises(OptionError, match=r"'bad': .*returns one tensor"):
        _ = UserPattern("bad", lambda x: 3).forms
    with pytest.raises(OptionError, match=r"'bad': .*rank"):
        _ = UserPattern("bad", lambda x: op.softmax(x, axis=9)).forms
