"""How far an engine's outputs are from what the model's file says, in multiples of what is allowed.

A model of floats is held to ONNX Runtime's outputs. In a model of bytes a sum that lies between two
codes falls on either side, and on its way through the network such a step grows: engines of equal
worth differ by more than any small tolerance. There the measure is what the file says literally,
ONNX Runtime without optimisations, and what is allowed is ONNX Runtime's own distance from it with
them, or the model's tolerance where that is more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime

from tools.models.case import ModelCase, Tolerance
from tools.models.judge import bound_ratio
from tools.models.zoo import TOLERANCE_OF_BYTES

Outputs = Sequence[np.ndarray]


def errors(
    case: ModelCase,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, Outputs],
    tolerance: Tolerance,
) -> dict[str, float | None]:
    """Per engine, the largest difference in multiples of what is allowed; None without ONNX
    Runtime among the engines."""
    reference = outputs.get("onnxruntime")
    if reference is None:
        return dict.fromkeys(outputs)
    if tolerance != TOLERANCE_OF_BYTES:
        return {name: _error(found, reference, tolerance) for name, found in outputs.items()}
    literal = _literally(case.path, inputs)
    found = {name: _error(got, literal, tolerance) for name, got in outputs.items()}
    allowed = max(1.0, found["onnxruntime"])
    return {name: error / allowed for name, error in found.items()}


def _literally(model: Path, inputs: Mapping[str, np.ndarray]) -> Outputs:
    """The model's outputs with every node run as the file has it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options)
    outputs: Outputs = session.run(None, dict(inputs))
    return outputs


def _error(got: Outputs, reference: Outputs, tolerance: Tolerance) -> float:
    pairs = zip(got, reference, strict=True)
    return max((bound_ratio(a, b, tolerance) for a, b in pairs), default=0.0)
