"""From a torch module to an ONNX file, by either of torch's exporters."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.models.case import Feed

AXIS_NAMES = {0: "batch", 1: "sequence", 2: "height", 3: "width"}
OPSET = 17


@dataclass(frozen=True)
class Style:
    """How a network is exported.

    `dynamo` picks torch's newer exporter (opset 18 and local names of its own);
    `keep_batch_norm` stops the older one from folding batch norm into convolutions.
    """

    dynamo: bool = False
    keep_batch_norm: bool = False


def export(
    net: torch.nn.Module,
    feeds: Sequence[Feed],
    outputs: Sequence[str],
    style: Style,
    path: Path,
) -> None:
    """Write `net` to `path` as one ONNX file; the free axes of `feeds` become named dims."""
    rng = np.random.default_rng(0)
    args = tuple(torch.from_numpy(feed.fill(rng, feed.shape)) for feed in feeds)
    by_style = _dynamo_options(feeds) if style.dynamo else _trace_options(feeds, style)
    with _quiet(), torch.no_grad():
        torch.onnx.export(
            net,
            args,
            path,
            input_names=[feed.name for feed in feeds],
            output_names=list(outputs),
            **by_style,
        )


def _trace_options(feeds: Sequence[Feed], style: Style) -> dict[str, Any]:
    """What the older exporter is told, by keyword."""
    mode = torch.onnx.TrainingMode
    return {
        "dynamo": False,
        "opset_version": OPSET,
        "dynamic_axes": {feed.name: _axis_names(feed) for feed in feeds if feed.free} or None,
        "training": mode.PRESERVE if style.keep_batch_norm else mode.EVAL,
    }


def _dynamo_options(feeds: Sequence[Feed]) -> dict[str, Any]:
    """What the newer exporter is told, by keyword; equal axis names are one dim."""
    dims = {name: torch.export.Dim(name) for feed in feeds for name in _axis_names(feed).values()}
    shapes = tuple(
        {axis: dims[name] for axis, name in _axis_names(feed).items()} or None for feed in feeds
    )
    return {
        "dynamo": True,
        "dynamic_shapes": (shapes,) if any(shapes) else None,
        "external_data": False,
        "verbose": False,
    }


def _axis_names(feed: Feed) -> dict[int, str]:
    return {axis: AXIS_NAMES[axis] for axis in feed.free}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Exporters warn at length about what they trace; none of it is for the zoo's user."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
