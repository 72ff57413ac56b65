"""What a zoo model is tried on: random inputs of three seeds, a real one, other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tools.models import samples
from tools.models.case import ModelCase, Shape, ZooError

SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Trial:
    """One set of inputs; `label` says which, for people."""

    label: str
    inputs: Mapping[str, np.ndarray]


def usual(case: ModelCase) -> Iterator[Trial]:
    """The seeds and the real input, at the row's own shapes."""
    for seed in SEEDS:
        yield Trial(f"seed {seed}", case.inputs(seed))
    try:
        yield Trial("real input", samples.real_inputs(case))
    except ZooError:
        return


def other_sizes(case: ModelCase) -> Iterator[Trial]:
    """Inputs of other sizes, down to 1, that one dynamic compile has to serve."""
    for shapes in _sizes(case):
        label = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        yield Trial(label, case.inputs(3, shapes))


def _sizes(case: ModelCase) -> Iterator[dict[str, Shape]]:
    """Shapes per input, for the first row of each dynamic model."""
    for sizes in _SIZES.get(case.name, ()):
        yield {
            feed.name: tuple(
                sizes[feed.free.index(axis)] if axis in feed.free else extent
                for axis, extent in enumerate(feed.shape)
            )
            for feed in case.feeds
            if feed.free
        }


_BATCHES = ((2,), (5,), (7,))
_SENTENCES = ((1, 1), (1, 2), (2, 7), (3, 16), (1, 33), (1, 200), (2, 100))
_SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "silero-vad": _BATCHES,
    "silero-vad-op15": _BATCHES,
    "silero-vad-sequence": ((1,), (2,), (7,), (61,)),
    "silero-vad-half": _BATCHES,
    "silero-vad-ifless": _BATCHES,
    "ocr-det": ((1, 64, 64), (1, 64, 640), (1, 352, 96), (2, 160, 224)),
    "ocr-rec": ((1, 48, 48), (1, 48, 100), (1, 48, 331), (1, 48, 640), (3, 48, 160)),
    "ocr-cls": ((1, 48, 48), (1, 48, 333), (4, 48, 192), (2, 40, 100)),
    "nudenet": ((1, 64, 64), (1, 160, 320), (1, 416, 256), (2, 128, 96)),
    "magika": _BATCHES,
    "bert-base-dynamic": ((1, 1), (2, 7), (3, 16), (1, 200)),
    "minilm": _SENTENCES,
    "resnet50-dynamic": ((1,), (7,)),
    "gpt2": ((1, 1), (2, 5), (1, 17)),
    "llama-tiny": _SENTENCES,
}
"""Extents of the free axes, in order, per model.

They are sizes at which float32 can tell: of the recogniser ONNX Runtime itself is 2.6 times the
tolerance from float64 at width 333, and the detector's output is all but 0 on the smallest images.
"""
