"""verify: agreement, the first value that drifts, the rule that moves numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuvil.cli import layers, oracles, rule_bisect
from cuvil.cli.compare import Comparison, Tolerance, compare
from cuvil.cli.layers import Value, chunks, inner_values
from tests import small_models
from tests.cli.cli_runner import Command

CHAIN = (
    "chain (float[N, 4] x) => (float[N, 4] e) "
    "{ a = Sigmoid(x)  b = Add(a, x)  c = Tanh(b)  d = Mul(c, c)  e = Exp(d) }"
)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A file of five nodes in a row, called n0 to n4."""
    made = small_models.model(CHAIN)
    for number, node in enumerate(made.graph.node):
        node.name = f"n{number}"
    return small_models.saved(made, tmp_path / "chain.onnx")


def wrong(oracle: Callable[..., Any], **offsets: float) -> Callable[..., Any]:
    """An oracle whose named values are off."""

    def made(source: oracles.Source, outputs: Any) -> Any:
        run = oracle(source, outputs)
        return lambda feed: {n: v + np.float32(offsets.get(n, 0)) for n, v in run(feed).items()}

    return made


@pytest.mark.parametrize("oracle", ["onnxruntime", "reference"])
def test_a_model_that_agrees(cuvil: Command, chain: Path, oracle: str) -> None:
    result = cuvil("verify", chain, "--oracle", oracle, "--size", "N=3", "--per-layer")
    assert result.status == 0
    assert f"agrees with {oracle}" in result.out
    assert "4 inner values compared, 0 skipped" in result.err


def test_the_first_value_that_drifts_is_named(
    cuvil: Command, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = wrong(oracles.ORACLES["reference"], c=0.5, d=0.5, e=0.5)
    monkeypatch.setitem(oracles.ORACLES, "reference", off)
    words = ("verify", chain, "--oracle", "reference", "--per-layer")
    result = cuvil(*words)
    assert result.status == 1
    assert "the first that drifts, of node n2 (Tanh): 'c'" in result.out
    assert "output 'e' drifts: 4 of 4 elements" in result.err
    found = cuvil(*words, "--json").out
    assert '"agrees": false' in found and '"node": "n3"' in found


def test_values_are_compared_a_few_at_a_time(
    cuvil: Command, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = inner_values(str(chain), {"N": 3})
    assert [(v.name, v.node, v.op, v.bytes) for v in values][:2] == [
        ("a", "n0", "Sigmoid", 96),
        ("b", "n1", "Add", 96),
    ]
    assert [len(c) for c in chunks(values, 200)] == [2, 2]
    assert [len(c) for c in chunks(values, 1)] == [1, 1, 1, 1]
    seen: list[list[str]] = []
    real = layers.LayerCheck._both
    monkeypatch.setattr(
        layers.LayerCheck, "_both",
        lambda self, names, feed: seen.append(names) or real(self, names, feed),
    )  # fmt: skip
    monkeypatch.setattr(layers, "chunks", lambda values, limit: chunks(values, 200))
    assert cuvil("verify", chain, "--per-layer", "--seeds", "1", "--size", "N=3").status == 0
    assert seen == [["a", "b"], ["c", "d"]]


def test_a_value_that_cannot_be_an_output_is_skipped(tmp_path: Path, cuvil: Command) -> None:
    made = small_models.model(
        "s (float[4] x) => (float[4] y) "
        "{ q = SequenceConstruct(x, x)  i = Constant<value = int64 {0}>()  y = SequenceAt(q, i) }"
    )
    path = small_models.saved(made, tmp_path / "s.onnx")
    if cuvil("check", path).status:
        pytest.skip("sequences are not supported")
    result = cuvil("verify", path, "--per-layer", "--json").json
    assert "q" in result["layers"]["skipped"]


def test_an_artefact_is_verified_against_its_model(
    cuvil: Command, chain: Path, dense: Path, tmp_path: Path
) -> None:
    cuvil("compile", chain, "-o", tmp_path / "out")
    assert cuvil("verify", chain, "--artefact", tmp_path / "out").status == 0


def test_no_rule_moves_numbers(cuvil: Command, chain: Path) -> None:
    result = cuvil("verify", chain, "--bisect", "--size", "N=2")
    assert result.status == 0 and "no rule moves the numbers" in result.err


def test_the_rule_that_moves_numbers_is_named(
    cuvil: Command, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that computes something else as soon as a fifth rule has been applied."""
    counts: list[int] = []
    real_phases, real_run = rule_bisect.run_phases, rule_bisect.interpreter.run
    names = ["one", "two", "three", "four", "bad", "six", "seven"]

    def run_phases(graph: Any, options: Any) -> Any:
        report = real_phases(graph, options)
        stop = len(names) if options.stop_after is None else options.stop_after
        report.applications[:] = [
            rule_bisect.Application(i + 1, name, "fuse", "n3")
            for i, name in enumerate(names[:stop])
        ]
        counts.append(stop)
        return report

    def run(graph: Any, feed: Any) -> Any:
        moved = bool(counts) and counts[-1] >= 5
        return {n: v + 1 if moved else v for n, v in real_run(graph, feed).items()}

    monkeypatch.setattr(rule_bisect, "run_phases", run_phases)
    monkeypatch.setattr(rule_bisect.interpreter, "run", run)
    result = cuvil("verify", chain, "--bisect")
    assert result.status == 1
    assert "application 5 of 7: rule 'bad', phase fuse, at n3: 'e' drifts" in result.out
    assert len(counts) <= 4


def test_oracles_that_cannot_serve_say_so(cuvil: Command, chain: Path) -> None:
    assert "needs the module" in cuvil.fails("verify", chain, "--oracle", "torch")
    assert "unknown oracle 'oracle'" in cuvil.fails("verify", chain, "--oracle", "oracle")


X = np.array([100.0, 1.0, 0.0], np.float32)


def compared(got: np.ndarray, ref: np.ndarray = X, **bounds: float) -> Comparison:
    return compare("y", got, ref, Tolerance(**bounds))


def test_tolerances() -> None:
    assert compared(X + np.float32(9e-4)).agrees
    off = X + np.array([0, 0.5, 0], np.float32)
    assert str(compared(off)) == "'y' drifts: 1 of 3 elements, furthest at [1]: 1.5, expected 1"
    assert compared(off, atol=0.6).agrees and not compared(X * 2).agrees
    assert "is float64[3], expected float32[3]" in str(compared(X.astype(np.float64)))
    assert compared(X[:0], X[:0]).agrees


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_special_values_stand_in_the_same_places(odd: float) -> None:
    special = X.copy()
    special[1] = odd
    assert compared(special, special.copy()).agrees
    assert not compared(special).agrees and not compared(X, special).agrees


def test_chunks_of_nothing() -> None:
    assert list(chunks([], 10)) == []
    assert list(chunks([Value("a", "n", "Op", 99)], 10)) == [[Value("a", "n", "Op", 99)]]
