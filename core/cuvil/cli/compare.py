"""Whether two arrays agree, and where they differ most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
RTOL = 1e-4
ATOL_OF_SCALE = 1e-5
"""The absolute tolerance as a fraction of the largest |reference|, where none is given."""


@dataclass(frozen=True)
class Tolerance:
    """|got - ref| <= atol + rtol |ref|; atol None is `scale` times the largest |ref|."""

    rtol: float = RTOL
    atol: float | None = None
    scale: float = ATOL_OF_SCALE

    def times(self, factor: float) -> Tolerance:
        """All bounds so many times as large."""
        atol = None if self.atol is None else self.atol * factor
        return Tolerance(self.rtol * factor, atol, self.scale * factor)

    def bound(self, reference: Array) -> Array:
        """The greatest difference that is allowed, per element of a float64 reference."""
        size = np.abs(np.where(np.isfinite(reference), reference, 0))
        atol = self.scale * float(size.max(initial=0)) if self.atol is None else self.atol
        return atol + self.rtol * size


@dataclass(frozen=True)
class Comparison:
    """One value of two engines. drift: how many elements are out of bounds; reason: why, if so.

    error: the largest |got - ref|; index, got, reference: of the element that is furthest out.
    """

    name: str
    drift: int
    count: int
    error: float = 0.0
    index: tuple[int, ...] = ()
    got: float = 0.0
    reference: float = 0.0
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Whether all elements are within bounds."""
        return not self.drift and not self.reason

    def __str__(self) -> str:
        if self.reason:
            return f"'{self.name}' {self.reason}"
        if self.agrees:
            return f"'{self.name}' agrees: largest difference {self.error:.3g}"
        return (
            f"'{self.name}' drifts: {self.drift} of {self.count} elements, furthest at "
            f"{list(self.index)}: {self.got:.9g}, expected {self.reference:.9g}"
        )

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"agrees": self.agrees}


def compare(name: str, got: Array, reference: Array, tolerance: Tolerance) -> Comparison:
    """Compares a value with its reference; NaN equals NaN, an infinity equals itself."""
    if got.shape != reference.shape or got.dtype != reference.dtype:
        what = f"is {got.dtype}{list(got.shape)}, expected {reference.dtype}{list(reference.shape)}"
        return Comparison(name, 0, got.size, reason=what)
    if not got.size:
        return Comparison(name, 0, 0)
    if got.dtype == object:
        return _compare_strings(name, got, reference)
    a, b = got.astype(np.float64), reference.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    difference = np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))
    excess = difference - tolerance.bound(b)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), a.shape))
    drift, worst = int(np.count_nonzero(excess > 0)), float(difference.max())
    return Comparison(name, drift, got.size, worst, at, float(a[at]), float(b[at]))


def _compare_strings(name: str, got: Array, reference: Array) -> Comparison:
    wrong = np.argwhere(got != reference)
    if not len(wrong):
        return Comparison(name, 0, got.size)
    at = tuple(int(i) for i in wrong[0])
    reason = f"differs first at {list(at)}: {got[at]!r}, expected {reference[at]!r}"
    return Comparison(name, len(wrong), got.size, index=at, reason=reason)


def compare_all(
    got: Mapping[str, Array], reference: Mapping[str, Array], tolerance: Tolerance
) -> list[Comparison]:
    """All values that the reference has, in its order."""
    return [compare(name, got[name], ref, tolerance) for name, ref in reference.items()]
