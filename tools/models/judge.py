"""How outputs of the zoo's models are judged.

`assert_close` is the comparison with another engine; `assert_accurate` the one with a float64
evaluation (`float64.evaluate`), which no engine's own rounding can hide. `bound_ratio` and
`Errors.ratio` give the same as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort

from tools.models.case import ModelCase, Tolerance

FP32 = Tolerance()
TOLERANCES = {"fp32": FP32, "bf16": Tolerance(2e-2, 1e-2), "fp16": Tolerance(2.5e-3, 1e-3)}
"""What is allowed when products are computed in so many bits."""
ALLOWED_ERROR = 4.0
"""Error against float64, in multiples of ONNX Runtime's own error."""


class OnnxRuntime:
    """A session of ONNX Runtime for a model, with all optimisations."""

    def __init__(self, case: ModelCase, threads: int = 1) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = ort.InferenceSession(case.path, options, providers=["CPUExecutionProvider"])

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The model's outputs by name."""
        names = [entry.name for entry in self._session.get_outputs()]
        return dict(zip(names, self._session.run(None, dict(inputs)), strict=True))


def onnxruntime_outputs(
    case: ModelCase, inputs: Mapping[str, np.ndarray], threads: int = 1
) -> dict[str, np.ndarray]:
    """The model's outputs by name, from ONNX Runtime."""
    return OnnxRuntime(case, threads).outputs(inputs)


def assert_close(name: str, got: np.ndarray, ref: np.ndarray, tolerance: Tolerance = FP32) -> None:
    """|got - ref| <= scale * max|ref| + relative * |ref|; integers and booleans exactly.

    NaNs and infinities must stand in the same places. AssertionError names the output, the
    worst element's index and both values.
    """
    got, ref = np.asarray(got), np.asarray(ref)
    assert got.dtype == ref.dtype, f"{name}: dtype {got.dtype}, expected {ref.dtype}"
    assert got.shape == ref.shape, f"{name}: shape {got.shape}, expected {ref.shape}"
    ratio = _ratios(got, ref, tolerance)
    wrong = int(np.count_nonzero(ratio > 1))
    if not wrong:
        return
    worst = tuple(int(axis) for axis in np.unravel_index(int(ratio.argmax()), ratio.shape))
    raise AssertionError(
        f"output {name!r}: {wrong} of {ratio.size} values differ; the worst is at "
        f"{worst}: got {got[worst]!r}, expected {ref[worst]!r}, "
        f"{ratio[worst]:.3g} times the bound (largest value {largest(ref):.3g})"
    )


def bound_ratio(got: np.ndarray, ref: np.ndarray, tolerance: Tolerance = FP32) -> float:
    """The largest error in multiples of what `assert_close` allows: at most 1 is right.

    Infinity where shapes or dtypes differ.
    """
    if got.dtype != ref.dtype or got.shape != ref.shape:
        return float("inf")
    return float(_ratios(got, ref, tolerance).max(initial=0))


@dataclass
class Errors:
    """The largest errors of two engines against float64, over any number of runs.

    own, reference: in multiples of the output's largest value. Engines are compared over several
    runs, since each has lucky ones, in outputs of a few values above all.
    """

    own: float = 0.0
    reference: float = 0.0
    rounding: float = 0.0

    def add(self, got: np.ndarray, ref: np.ndarray, exact: np.ndarray) -> None:
        """Takes a run into account; integers and booleans have no error."""
        scale = largest(exact)
        if not np.issubdtype(np.asarray(ref).dtype, np.floating) or scale == 0:
            return
        self.own = max(self.own, _difference(got, exact).max(initial=0) / scale)
        self.reference = max(self.reference, _difference(ref, exact).max(initial=0) / scale)
        self.rounding = float(np.finfo(ref.dtype).eps)

    @property
    def ratio(self) -> float:
        """own / reference, where the reference counts as off by two roundings of the largest value
        at least: with less it was lucky, since a softmax alone makes more of its operand's."""
        return self.own / max(self.reference, 2 * self.rounding) if self.own else 0.0


def assert_accurate(name: str, errors: Errors, allowed: float = ALLOWED_ERROR) -> None:
    """The own error is at most `allowed` times the reference's."""
    assert errors.ratio <= allowed, (
        f"{name}: the largest error against float64 is {errors.own:.3g} of the largest value, "
        f"{errors.ratio:.3g} times the reference's; at most {allowed} are allowed"
    )


def assert_all_close(
    got: Sequence[np.ndarray], ref: dict[str, np.ndarray], tolerance: Tolerance = FP32
) -> None:
    """`assert_close` for every output, in order."""
    assert len(got) == len(ref), f"{len(got)} outputs, expected {list(ref)}"
    for (name, expected), value in zip(ref.items(), got, strict=True):
        assert_close(name, value, expected, tolerance)


def largest(values: np.ndarray) -> float:
    """The largest finite magnitude, 0 without any."""
    finite = np.abs(_wide(values))[np.isfinite(values)]
    return float(finite.max(initial=0))


def _ratios(got: np.ndarray, ref: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    """Each element's error in multiples of its bound; infinity where integers differ."""
    if not np.issubdtype(ref.dtype, np.floating):
        return np.where(got == ref, 0.0, np.inf)
    size = np.where(np.isfinite(ref), np.abs(_wide(ref)), 0)
    bound = tolerance.scale * largest(ref) + tolerance.relative * size
    return _difference(got, ref) / np.maximum(bound, 1e-300)


def _difference(got: np.ndarray, ref: np.ndarray) -> np.ndarray:
    """|got - ref| in float64: 0 where both are the same NaN or infinity, inf where only one is."""
    wide_got, wide_ref = _wide(got), _wide(ref)
    same = (wide_got == wide_ref) | (np.isnan(wide_got) & np.isnan(wide_ref))
    with np.errstate(invalid="ignore"):
        error = np.abs(wide_got - wide_ref)
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


def _wide(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).astype(np.float64)
