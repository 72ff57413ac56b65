"""What a compiled model is compared with: other ways to run the same ONNX model."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil.cli.inputs import Array
from cuvil.errors import OptionError, UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter

Feed = Mapping[str, Array]


@dataclass(frozen=True)
class Source:
    """An ONNX model: a path, or bytes with the folder of their external data."""

    model: str | bytes
    folder: str | None = None
    dims: Mapping[str, int] | None = None


Run = Callable[[Feed], dict[str, Array]]
"""Outputs by name for inputs by name."""


def oracle(name: str, source: Source, outputs: Sequence[str] | None = None) -> Run:
    """The model as the named oracle runs it; outputs: which, by default all.

    OptionError for an unknown or missing one, UnsupportedError for one that cannot take ONNX.
    """
    if name not in ORACLES:
        raise OptionError(f"unknown oracle '{name}'; there are {', '.join(ORACLES)}")
    return ORACLES[name](source, outputs)


def _onnxruntime(source: Source, outputs: Sequence[str] | None) -> Run:
    if importlib.util.find_spec("onnxruntime") is None:
        raise OptionError(
            "onnxruntime is not installed: pip install onnxruntime, or use --oracle reference"
        )
    ort = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4  # errors come as exceptions
    if source.folder is not None:
        key = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(key, os.path.abspath(source.folder))
    try:
        session = ort.InferenceSession(source.model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes
        raise UnsupportedError(f"onnxruntime cannot run the model: {_one_line(error)}") from error
    names = list(outputs) if outputs else [o.name for o in session.get_outputs()]

    def run(feed: Feed) -> dict[str, Array]:
        try:
            values: list[Any] = session.run(names, dict(feed))
        except Exception as error:  # onnxruntime's own classes
            raise UnsupportedError(
                f"onnxruntime cannot run these inputs: {_one_line(error)}"
            ) from error
        return {n: np.asarray(v) for n, v in zip(names, values, strict=True)}

    return run


def _reference(source: Source, outputs: Sequence[str] | None) -> Run:
    graph = import_model(source.model, folder=source.folder, dims=dict(source.dims or {}))

    def run(feed: Feed) -> dict[str, Array]:
        found = interpreter.run(graph, feed)
        return {n: found[n] for n in outputs} if outputs else found

    return run


def _torch(source: Source, outputs: Sequence[str] | None) -> Run:
    raise UnsupportedError(
        "the torch oracle needs the module that a model was exported from, and an ONNX file has "
        "none: use --oracle onnxruntime or reference"
    )


ORACLES = {"onnxruntime": _onnxruntime, "reference": _reference, "torch": _torch}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
