"""Dynamic models compiled for one size."""

from __future__ import annotations

import pytest
from models.checks import check_fixed_sizes, zoo_case

NAMES = ["silero-vad-op15", "ocr-det", "ocr-rec-short", "ocr-cls", "nudenet-wide", "minilm-16"]
NAMES += ["resnet50-dynamic", "llama-tiny"]


@pytest.mark.parametrize("name", NAMES)
def test_fixed_sizes(name: str) -> None:
    check_fixed_sizes(zoo_case(name))
