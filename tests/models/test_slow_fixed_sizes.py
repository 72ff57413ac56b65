"""Dynamic models compiled for one size, and the light models as they come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from models.checks import by_name, check_fixed_sizes, zoo_case

import cuvil
from tools.models import light
from tools.models.judge import OnnxRuntime, assert_close
from tools.models.sources import Packaged

DYNAMIC = ["silero-vad-op15", "ocr-det", "ocr-rec-short", "ocr-cls", "nudenet-wide", "minilm-16"]
DYNAMIC += ["resnet50-dynamic", "llama-tiny"]


@pytest.mark.parametrize("name", DYNAMIC)
def test_fixed_sizes(name: str) -> None:
    check_fixed_sizes(zoo_case(name))


@pytest.mark.parametrize("stem", light.STEMS)
def test_original_light_model_runs(stem: str) -> None:
    """A smoke test: every weight is one value, and so is every output."""
    original = Packaged("onnx", f"backend/test/data/light/light_{stem}.onnx", "onnx")
    case = replace(zoo_case(f"light-{stem}"), path=original.location())
    inputs = case.inputs(0)
    with cuvil.compile(case.path, threads=1, cache=False) as engine:
        got = by_name(engine)(inputs)
    for name, ref in OnnxRuntime(case).outputs(inputs).items():
        assert_close(name, got[name], ref)
