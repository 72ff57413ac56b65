"""How tests judge outputs of the zoo's models.

`assert_close` is the comparison with another engine; `assert_accurate` the one with a float64
evaluation (`float64.evaluate`), which no engine's own rounding can hide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort

from tools.models.case import ModelCase, Tolerance

FP32 = Tolerance()
ALLOWED_ERROR = 4.0
"""Error against float64, in multiples of ONNX Runtime's own error."""


def onnxruntime_outputs(
    case: ModelCase, inputs: dict[str, np.ndarray], threads: int = 1
) -> dict[str, np.ndarray]:
    """The model's outputs by name, from ONNX Runtime with all optimisations."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = ort.InferenceSession(case.path, options, providers=["CPUExecutionProvider"])
    values = session.run(None, inputs)
    return dict(zip([entry.name for entry in session.get_outputs()], values, strict=True))


def assert_close(name: str, got: np.ndarray, ref: np.ndarray, tolerance: Tolerance = FP32) -> None:
    """|got - ref| <= scale * max|ref| + relative * |ref|; integers and booleans exactly.

    NaNs and infinities must stand in the same places. AssertionError names the output, the
    worst element's index and both values.
    """
    got, ref = np.asarray(got), np.asarray(ref)
    assert got.dtype == ref.dtype, f"{name}: dtype {got.dtype}, expected {ref.dtype}"
    assert got.shape == ref.shape, f"{name}: shape {got.shape}, expected {ref.shape}"
    if not np.issubdtype(ref.dtype, np.floating):
        _report(name, got, ref, (got != ref).astype(np.float64))
        return
    size = np.where(np.isfinite(ref), np.abs(_wide(ref)), 0)
    bound = tolerance.scale * largest(ref) + tolerance.relative * size
    error = _difference(got, ref)
    _report(name, got, ref, np.where(error <= bound, 0, error / np.maximum(bound, 1e-300)))


def assert_accurate(
    name: str, got: np.ndarray, ref: np.ndarray, exact: np.ndarray, allowed: float = ALLOWED_ERROR
) -> None:
    """The error of `got` against the float64 `exact` is at most `allowed` times that of `ref`.

    Both errors are the largest over the output. One rounding of the largest value is forgiven,
    since `ref` may be exact by luck.
    """
    if not np.issubdtype(np.asarray(ref).dtype, np.floating):
        return
    rounding = float(np.finfo(ref.dtype).eps) * largest(exact)
    own, other = _difference(got, exact).max(initial=0), _difference(ref, exact).max(initial=0)
    assert own <= allowed * max(other, rounding), (
        f"{name}: largest error against float64 is {own:.3g}, more than {allowed} times the "
        f"reference's {other:.3g} (largest value {largest(exact):.3g})"
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


def _difference(got: np.ndarray, ref: np.ndarray) -> np.ndarray:
    """|got - ref| in float64: 0 where both are the same NaN or infinity, inf where only one is."""
    wide_got, wide_ref = _wide(got), _wide(ref)
    same = (wide_got == wide_ref) | (np.isnan(wide_got) & np.isnan(wide_ref))
    with np.errstate(invalid="ignore"):
        error = np.abs(wide_got - wide_ref)
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


def _wide(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).astype(np.float64)


def _report(name: str, got: np.ndarray, ref: np.ndarray, excess: np.ndarray) -> None:
    """Fail where `excess` (error in multiples of the bound) is above 0."""
    wrong = int(np.count_nonzero(excess))
    if not wrong:
        return
    worst = tuple(int(axis) for axis in np.unravel_index(int(excess.argmax()), excess.shape))
    raise AssertionError(
        f"output {name!r}: {wrong} of {excess.size} values differ; the worst is at "
        f"{worst}: got {got[worst]!r}, expected {ref[worst]!r}, "
        f"{excess[worst]:.3g} times the bound (largest value {largest(ref):.3g})"
    )
