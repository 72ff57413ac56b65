"""What the zoo hands out: a model file, its inputs and the tolerance its outputs are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Shape = tuple[int, ...]
Fill = Callable[[np.random.Generator, Shape], np.ndarray]


class ZooError(RuntimeError):
    """A zoo model cannot be had; the message names the model and the command that helps."""


@dataclass(frozen=True)
class Tolerance:
    """Bounds of |got - ref| <= scale * max|ref| + relative * |ref|, taken per output."""

    scale: float = 1e-5
    relative: float = 1e-4


@dataclass(frozen=True)
class Feed:
    """One model input: its shape in tests and benchmarks, its filler and its free axes."""

    name: str
    shape: Shape
    fill: Fill
    free: tuple[int, ...] = ()


@dataclass(frozen=True)
class ModelCase:
    """A model that is on disk, with everything needed to run and judge it.

    `dynamic` maps an input name to the axes whose size the caller may choose.
    """

    name: str
    arch: str
    path: Path
    feeds: tuple[Feed, ...]
    tolerance: Tolerance

    @property
    def dynamic(self) -> dict[str, tuple[int, ...]]:
        return {feed.name: feed.free for feed in self.feeds if feed.free}

    @property
    def shapes(self) -> dict[str, Shape]:
        return {feed.name: feed.shape for feed in self.feeds}

    def inputs(
        self, seed: int = 0, shapes: Mapping[str, Shape] | None = None
    ) -> dict[str, np.ndarray]:
        """C-contiguous arrays for every input, the same for the same seed.

        `shapes` overrides the shape of single inputs; only free axes may differ.
        """
        wanted = dict(shapes or {})
        if unknown := wanted.keys() - self.shapes.keys():
            raise ZooError(f"{self.name}: no input named {sorted(unknown)}")
        rng = np.random.default_rng(seed)
        return {
            feed.name: feed.fill(rng, _checked(self.name, feed, wanted.get(feed.name)))
            for feed in self.feeds
        }


def _checked(model: str, feed: Feed, wanted: Shape | None) -> Shape:
    """The wanted shape, or the feed's own; raises ZooError where a fixed axis differs."""
    if wanted is None:
        return feed.shape
    fixed = [axis for axis in range(len(feed.shape)) if axis not in feed.free]
    same_rank = len(wanted) == len(feed.shape)
    if not same_rank or any(wanted[axis] != feed.shape[axis] for axis in fixed):
        raise ZooError(
            f"{model}: input {feed.name!r} is {feed.shape} with free axes {feed.free}, "
            f"so it cannot be {wanted}"
        )
    return wanted
