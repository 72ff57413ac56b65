"""Small models of the zoo, compiled to libraries and held to ONNX Runtime and float64."""

from __future__ import annotations

from pathlib import Path

import pytest
from models.checks import by_name, check_close_to_onnxruntime, check_fixed_sizes, zoo_case
from models.every_model import EveryModel

import cuvil
from cuvil.errors import TargetError
from cuvil.targets.registry import find
from tools.models import zoo
from tools.models.compiled import compile_case

NAMES = ["silero-vad", "silero-vad-8k", "silero-vad-sequence", "ocr-cls", "magika"]
NAMES += ["light-squeezenet"]


class TestSmallModels(EveryModel):
    names = NAMES


def test_names_are_of_the_zoo() -> None:
    assert set(NAMES) <= set(zoo.names())


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
