"""Small models of the zoo, compiled to libraries and held to ONNX Runtime and float64."""

from __future__ import annotations

from pathlib import Path

import pytest
from models.checks import (
    ZooModel,
    by_name,
    check_accurate,
    check_agrees_with_onnxruntime,
    check_close_to_onnxruntime,
    check_fixed_sizes,
    check_same_from_c,
    zoo_case,
)

import cuvil
from cuvil.errors import TargetError
from cuvil.targets.registry import find
from tools.models import zoo
from tools.models.compiled import compile_case

NAMES = ["silero-vad", "silero-vad-8k", "silero-vad-sequence", "ocr-cls", "magika"]
NAMES += ["light-squeezenet"]

every_model = pytest.mark.parametrize("model", NAMES, indirect=True, scope="module")


def test_names_are_of_the_zoo() -> None:
    assert set(NAMES) <= set(zoo.names())


@every_model
def test_agrees_with_onnxruntime_at_any_size(model: ZooModel) -> None:
    check_agrees_with_onnxruntime(model)


@every_model
def test_is_as_close_to_float64_as_onnxruntime(model: ZooModel) -> None:
    check_accurate(model)


@every_model
def test_a_c_program_gets_the_same_bytes(model: ZooModel, c_runner: Path, tmp_path: Path) -> None:
    check_same_from_c(model, c_runner, tmp_path)


@pytest.mark.parametrize("name", ["silero-vad-sequence", "magika"])
def test_fixed_sizes(name: str) -> None:
    check_fixed_sizes(zoo_case(name))


@pytest.mark.parametrize("name", ["silero-vad-sequence", "magika"])
def test_every_variant_agrees(name: str, tmp_path: Path) -> None:
    case, everywhere = zoo_case(name), find()[1].triple
    made = compile_case(case, tmp_path, target=everywhere)
    for variant in made.artefact.manifest["variants"]:
        try:
            engine = cuvil.load(made.library, threads=1, variant=variant["name"])
        except TargetError:
            continue
        check_close_to_onnxruntime(case, by_name(engine))
