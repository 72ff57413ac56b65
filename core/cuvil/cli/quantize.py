"""A quantised model from an ONNX file, by onnxruntime's tools: a project file's `quantization`."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cuvil.errors import InputError, ModelError, UnsupportedError

__all__ = ["MODES", "PRODUCTS", "quantised"]

MODES = ("dynamic", "static")
PRODUCTS = ("MatMul", "Gemm", "Conv")
"""What "static" is good for in transformers: norms, masks and sums of theirs need their range."""


@contextmanager
def quantised(
    file: str, mode: str, data: str = "", only: Sequence[str] | None = None
) -> Iterator[str]:
    """A file with the model's weights in 8 bits, which is gone behind the block.

    mode: "dynamic" finds the range of activations in every run, "static" here, from the inputs in
    data: a file .npz of one set of inputs by name, or a folder of them. only: operators whose
    inputs "static" quantises, by default all that onnxruntime has. Raises UnsupportedError
    without onnxruntime, InputError for data that does not fit, ModelError.
    """
    tools = _tools()
    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        made = str(Path(folder, Path(file).name))
        try:
            if mode == "dynamic":
                tools.quantize_dynamic(
                    file, made, weight_type=tools.QuantType.QInt8, per_channel=True
                )
            else:
                tools.quantize_static(
                    file, made, _reader(tools, Path(data)), per_channel=True,
                    op_types_to_quantize=only and list(only),
                )  # fmt: skip
        except InputError:
            raise
        except Exception as error:  # whatever onnxruntime raises of its own
            raise ModelError(f"{file}: onnxruntime cannot quantise it: {_line(error)}") from error
        yield made


def _tools() -> Any:
    try:
        return importlib.import_module("onnxruntime.quantization")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"quantization needs onnxruntime: {error}; pip install onnxruntime"
        ) from error


def _reader(tools: Any, data: Path) -> Any:
    """The sets of inputs one after another, as onnxruntime wants them."""
    files = sorted(data.glob("*.npz")) if data.is_dir() else [data]
    if not files:
        raise InputError(f"{data}: there is no file .npz in it to find the ranges of values from")
    sets = iter([_read(file) for file in files])

    class Reader(tools.CalibrationDataReader):
        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(sets, None)

    return Reader()


def _read(file: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: no file of arrays by name: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
