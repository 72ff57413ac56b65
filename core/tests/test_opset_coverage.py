"""Every version of every operator of ai.onnx is exercised, by ONNX's suite or by an example."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx.backend.test.loader import load_model_tests
from opset_example import schemas, versions_in
from opset_list import ALL

from cuvil.frontends.onnx.functions import has_body
from cuvil.ops.onnx.registry import find

KNOWN = schemas()
HOST_ONLY = {"ImageDecoder"}
ELSEWHERE = {
    ("Bernoulli", 15): "statistics in test_onnx_random",
    ("Multinomial", 7): "statistics in test_onnx_random",
    ("Multinomial", 22): "statistics in test_onnx_random",
    ("RandomNormal", 1): "statistics in test_onnx_random",
    ("RandomNormal", 22): "statistics in test_onnx_random",
    ("RandomNormalLike", 1): "statistics in test_onnx_random",
    ("RandomNormalLike", 22): "statistics in test_onnx_random",
    ("RandomUniform", 1): "statistics in test_onnx_random",
    ("RandomUniform", 22): "statistics in test_onnx_random",
    ("RandomUniformLike", 1): "statistics in test_onnx_random",
    ("Scatter", 11): "no meaning: deprecated in favour of ScatterElements",
    ("Upsample", 10): "no meaning: deprecated in favour of Resize",
}


def in_suite() -> set[tuple[str, str, int]]:
    """(domain, operator, version) of every node in ONNX's own test cases."""
    found: set[tuple[str, str, int]] = set()
    for kind in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
            found.update(versions_in(model, KNOWN))
    return found


def test_every_version_is_exercised_or_has_a_reason():
    exercised = in_suite().union(*(versions_in(e.model, KNOWN) for e in ALL))
    every = {(op, v) for (domain, op), versions in KNOWN.items() if not domain for v in versions}
    rest = every - {(op, v) for domain, op, v in exercised if not domain}
    assert sorted(rest - set(ELSEWHERE)) == []
    assert sorted(set(ELSEWHERE) - rest) == []


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_every_version_has_a_meaning(domain: str):
    every = [(op, v) for (d, op), versions in KNOWN.items() if d == domain for v in versions]
    without = [
        (op, v)
        for op, v in sorted(every)
        if op not in HOST_ONLY and find(domain, op, v) is None and not has_body(op, v, domain)
    ]
    assert without == []
