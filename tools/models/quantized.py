"""The zoo's models as bytes, made by ONNX Runtime's quantiser from their own sample inputs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from onnxruntime import quantization as tool
from onnxruntime.quantization.shape_inference import quant_pre_process

from tools.models.cache import cached, cached_path
from tools.models.case import Feed, ModelCase, Tolerance
from tools.models.sources import Source

FORMS = ("u8s8", "s8s8", "u8dyn")
SAMPLES = 4  # inputs from which the ranges of activations are read


@dataclass(frozen=True)
class Quantized:
    """A model of bytes. form: u8s8, s8s8: activations and weights, fixed ranges, Q and DQ nodes;
    u8dyn: ranges of activations found by each run. Weights are scaled per channel."""

    stem: str
    source: Source
    form: str

    def file(self, feeds: Sequence[Feed]) -> Path:
        return cached(f"{self.stem}-{self.form}", lambda path: self._build(feeds, path))

    def location(self) -> Path:
        return cached_path(f"{self.stem}-{self.form}")

    def _build(self, feeds: Sequence[Feed], path: Path) -> None:
        case = ModelCase(self.stem, self.stem, self.source.file(feeds), tuple(feeds), Tolerance())
        logging.getLogger().setLevel(logging.ERROR)
        with TemporaryDirectory(dir=path.parent) as scratch:
            ready = str(Path(scratch) / "ready.onnx")
            quant_pre_process(str(case.path), ready, skip_symbolic_shape=True)
            if self.form == "u8dyn":
                tool.quantize_dynamic(ready, str(path), per_channel=True)
                return
            kinds = {"u8": tool.QuantType.QUInt8, "s8": tool.QuantType.QInt8}
            tool.quantize_static(
                ready, str(path), _Samples(case), quant_format=tool.QuantFormat.QDQ,
                per_channel=True, activation_type=kinds[self.form[:2]], weight_type=kinds["s8"],
            )  # fmt: skip


class _Samples(tool.CalibrationDataReader):  # type: ignore[misc]
    """Inputs of a model, one after another."""

    def __init__(self, case: ModelCase) -> None:
        self._left = [case.inputs(seed) for seed in range(SAMPLES)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None
