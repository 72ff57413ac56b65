"""The exact values: the meaning of a function in float64, fast enough for every float32.

The compiled float64 functions, which err by a few units in the last place of float64, 2**-27 of
one of float32; wherever they are used some of their values are compared with numpy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuvil.ops.scalars import Scalar, evaluate, scalar
from cuvil.targets.backend import VariantSpec
from tools.numerics.builds import Compiled

Array = np.ndarray[Any, Any]

__all__ = ["Exact", "OracleError", "far"]

_PERIODIC = ("sin", "cos", "tan")
_CALLS, _EVERY = 8, 509  # numpy checks one value in so many, of one call in so many


def far(name: str, fma: bool) -> float:
    """The |x| up to which a function promises accuracy, see `trigonometric.py`."""
    if name not in _PERIODIC:
        return math.inf
    return 1e12 if fma else 1.6e6


class OracleError(Exception):
    """The two ways to compute an exact value differ."""


class Exact:
    """The exact values of one function, in float64, for chunks of float32 operands."""

    def __init__(self, name: str, build: VariantSpec, size: int) -> None:
        self.row: Scalar = scalar(name)
        self.far = far(name, build.facts.fma)
        self._double = Compiled(name, "f64", build)
        self._wide, self._value = np.empty(size), np.empty(size)
        self._calls = 0

    def __call__(self, x: Array) -> Array:
        """Values that stay until the next call, for at most `size` operands.

        OracleError where the compiled function is not what numpy has; one call in some is checked.
        """
        wide, value = self._wide[: x.size], self._value[: x.size]
        with np.errstate(all="ignore"):
            np.copyto(wide, x)
        self._double.body(wide, out=value)
        if self._calls % _CALLS == 0:
            some = np.ascontiguousarray(wide[::_EVERY])
            self._compare(some, value[::_EVERY], evaluate(self.row.name, some))
        self._calls += 1
        return value

    def _compare(self, x: Array, value: Array, reference: Array) -> None:
        with np.errstate(all="ignore"):
            allowed = self.row.allowed_error(reference, x)
            good = np.abs(value - reference) <= allowed
        good |= np.abs(x) > self.far
        good |= (value == reference) | (np.isnan(value) & np.isnan(reference))
        if not good.all():
            i = int(np.argmin(good))
            raise OracleError(
                f"{self.row.name}({x[i]}) in float64: compiled {value[i]}, numpy {reference[i]}"
            )
