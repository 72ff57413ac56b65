"""From a torch module to an ONNX file, by either of torch's exporters."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    args = tuple(torch.from_numpy(array) for array in _example(feeds))
    names = [feed.name for feed in feeds]
    with _quiet(), torch.no_grad():
        if style.dynamo:
            _export_dynamo(net, args, names, feeds, outputs, path)
        else:
            _export_trace(net, args, names, feeds, outputs, style, path)


def _export_trace(net, args, names, feeds, outputs, style, path) -> None:
    axes = {feed.name: _axis_names(feed) for feed in feeds if feed.free}
    keep = torch.onnx.TrainingMode.PRESERVE if style.keep_batch_norm else None
    torch.onnx.export(
        net,
        args,
        path,
        input_names=names,
        output_names=list(outputs),
        dynamic_axes=axes or None,
        opset_version=OPSET,
        dynamo=False,
        training=keep or torch.onnx.TrainingMode.EVAL,
    )


def _export_dynamo(net, args, names, feeds, outputs, path) -> None:
    dims = {name: torch.export.Dim(name) for feed in feeds for name in _axis_names(feed).values()}
    shapes = tuple(
        {axis: dims[name] for axis, name in _axis_names(feed).items()} or None for feed in feeds
    )
    torch.onnx.export(
        net,
        args,
        path,
        input_names=names,
        output_names=list(outputs),
        dynamic_shapes=(shapes,) if any(shapes) else None,
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def _example(feeds: Sequence[Feed]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [feed.fill(rng, feed.shape) for feed in feeds]


def _axis_names(feed: Feed) -> dict[int, str]:
    return {axis: AXIS_NAMES[axis] for axis in feed.free}


@contextlib.contextmanager
def _quiet():
    """Exporters warn at length about what they trace; none of it is for the zoo's user."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
