"""The zoo's models that test_models.py leaves out, but for the light ones."""

from __future__ import annotations

from models.every_model import EveryModel

from tools.models import zoo

FAST = ("silero-vad", "silero-vad-8k", "silero-vad-sequence", "ocr-cls", "magika")


class TestModels(EveryModel):
    names = tuple(n for n in zoo.names() if n not in FAST and not n.startswith("light-"))
