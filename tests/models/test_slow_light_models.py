"""The light models of the onnx package, with random weights and as they come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from models.checks import by_name, zoo_case
from models.every_model import EveryModel

import cuvil
from tools.models import light, zoo
from tools.models.judge import OnnxRuntime, assert_close
from tools.models.sources import Packaged


class TestLightModels(EveryModel):
    names = tuple(name for name in zoo.names() if name.startswith("light-"))


@pytest.mark.parametrize("stem", light.STEMS)
def test_original_runs(stem: str) -> None:
    """A smoke test: every weight is one value, and so is every output."""
    original = Packaged("onnx", f"backend/test/data/light/light_{stem}.onnx", "onnx")
    case = replace(zoo_case(f"light-{stem}"), path=original.location())
    inputs = case.inputs(0)
    with cuvil.compile(case.path, threads=1, cache=False) as engine:
        got = by_name(engine)(inputs)
    for name, ref in OnnxRuntime(case).outputs(inputs).items():
        assert_close(name, got[name], ref)
