"""What is measured from samples: float64, pow; and the 16-bit types, whose patterns are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ops.scalar_expansions import Namespace
from cuvil.ops.scalars import SCALARS, Scalar, evaluate
from cuvil.targets.backend import VariantSpec
from tools.numerics.builds import Compiled, compiled, unary_rows
from tools.numerics.exact import far

Array = np.ndarray[Any, Any]

__all__ = ["Sample", "extended", "halves", "powers", "ulp_errors", "wide"]

_SPREADS = (0.5, 1.5, 8.0)  # decades of the random operands' size
_COUNT = 1 << 15
_SLOW = 1 << 11  # samples where mpmath computes the exact value
_POWER_SPREADS = (0.5, 1.5, 3.0)


@dataclass(frozen=True)
class Sample:
    """The largest error of a function in one build, in last places of its type beyond the slack.

    misrounded: results that are not the nearest numbers of the type to the exact values. faults:
    results off the bound, or (16-bit types) that are not the rounded float32 results.
    """

    name: str
    dtype: str
    build: str
    count: int
    ulps: float
    allowed: float
    misrounded: int = 0
    faults: int = 0

    def __str__(self) -> str:
        return (
            f"{self.name:<18}{self.dtype:<6}{self.build:<10}{self.ulps:>8.3f} of {self.allowed:g}, "
            f"{self.misrounded} of {self.count} not nearest, {self.faults} faults"
        )


def ulp_errors(value: Array, exact: Array, slack: Array | float = 0.0) -> Array:
    """max(|value - exact| - slack, 0) in last places of `value`'s type at `exact` (a wider type).

    Equal infinities and NaN for NaN count 0; a special value missed counts infinity. A result
    that overflows beside the largest number counts by the distance to 2**emax.
    """
    info = ml_dtypes.finfo(value.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(value.dtype)
        same = (rounded == value) | (np.isnan(rounded) & np.isnan(value))
        odd = ~same & (np.isnan(value) | np.isnan(rounded))
        limit = exact.dtype.type(2.0) ** info.maxexp
        clipped = np.clip(exact, -limit, limit)
        size = np.clip(np.abs(clipped), exact.dtype.type(info.tiny), limit / 2)
        place = np.exp2(np.floor(np.log2(size)) - info.nmant)
        gap = np.abs(np.clip(value.astype(exact.dtype), -limit, limit) - clipped)
        error = np.maximum(gap - slack, 0.0) / place
    return np.where(odd, np.inf, np.where(np.isnan(error), 0.0, error))


def _mpmath(function: Any) -> Any:
    def one(x: np.longdouble) -> np.longdouble:
        if not np.isfinite(x):
            return np.longdouble(function(mpmath.mpf(float(x))))
        high = float(x)
        exact = function(mpmath.mpf(high) + mpmath.mpf(float(x - high)))
        return np.longdouble(float(exact)) + np.longdouble(float(exact - float(exact)))

    return np.vectorize(one, otypes=[np.longdouble])


_EXTENDED = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "expm1": np.expm1,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power, "erf": _mpmath(mpmath.erf),
}  # fmt: skip


class _Extended(Namespace):
    """Meanings in long double, which is wider than float64 where numpy has it so."""

    def apply(self, name: str, *args: Any, **attrs: Any) -> Any:
        row = SCALARS[name]
        merged = row.attributes(attrs)
        arrays = [a if isinstance(a, np.ndarray) else np.asarray(a, np.longdouble) for a in args]
        if row.expansion is not None:
            return row.expansion(self, *arrays, **merged)
        function = _EXTENDED.get(name) or row.numpy
        assert function is not None
        return np.asarray(function(*arrays, **merged))


def extended(name: str, *operands: Array) -> Array:
    """The meaning in long double."""
    with np.errstate(all="ignore"):
        return np.asarray(_Extended().apply(name, *[x.astype(np.longdouble) for x in operands]))


def wide(builds: Sequence[VariantSpec]) -> Iterator[Sample]:
    """float64 functions of one operand, over random numbers of all magnitudes."""
    rows = unary_rows("f64")
    made = [compiled([row.name for row in rows], "f64", build) for build in builds]
    for row in rows:
        count = _SLOW if "erf" in row.name or row.name == "gelu" else _COUNT
        x = _drawn(count, _SPREADS, np.float64)
        exact = extended(row.name, x)
        for functions in made:
            yield _sample(row, "f64", functions[row.name], (x,), exact)


def powers(builds: Sequence[VariantSpec]) -> Iterator[Sample]:
    """pow of float32 and float64, over random pairs and pairs of special numbers."""
    row = SCALARS["pow"]
    for name, exact in (("f32", evaluate), ("f64", extended)):
        kind = dtype_of(name).numpy
        pairs = [_drawn(8 * _COUNT, _POWER_SPREADS, kind, seed) for seed in (1, 2)]
        odd = np.array([0, 1, 2, 3, 0.5, 1.5, np.inf, np.nan, np.finfo(kind).tiny, 2.0**24 + 1])
        grid = np.array(np.meshgrid(*[np.concatenate([odd, -odd])] * 2)).reshape(2, -1)
        x, y = (np.concatenate([p, g.astype(kind)]) for p, g in zip(pairs, grid, strict=True))
        wider = np.float64 if name == "f32" else np.longdouble
        real = exact("pow", x.astype(wider), y.astype(wider))
        for build in builds:
            yield _sample(row, name, Compiled("pow", name, build), (x, y), real)


def halves(builds: Sequence[VariantSpec], names: Sequence[str] = ()) -> Iterator[Sample]:
    """Every float16 and every bfloat16: what float32 gives, rounded once. names: default all."""
    rows = [row for row in unary_rows("f16") if not names or row.name in names]
    names = [row.name for row in rows]
    made = [[compiled(names, kind, b) for b in builds] for kind in ("f32", "f16", "bf16")]
    for row in rows:
        for name, by_build in zip(("f16", "bf16"), made[1:], strict=True):
            x = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(name).numpy)
            with np.errstate(all="ignore"):
                wider = x.astype(np.float32)
                real = evaluate(row.name, wider.astype(np.float64))
                for single, functions in zip(made[0], by_build, strict=True):
                    rounded = single[row.name].body(wider).astype(x.dtype)
                    yield _sample(row, name, functions[row.name], (x,), real, rounded)


def _sample(
    row: Scalar,
    name: str,
    function: Compiled,
    operands: tuple[Array, ...],
    exact: Array,
    rounded: Array | None = None,
) -> Sample:
    value = function.body(*operands)
    info = ml_dtypes.finfo(value.dtype)
    size = np.maximum.reduce([np.abs(x.astype(exact.dtype)) for x in operands])
    size = np.where(size >= 1, size, 1)  # NaN, too
    unit = row.slack * float(info.eps) + bool(row.expansion) * float(info.smallest_subnormal)
    near = np.maximum.reduce([np.abs(x.astype(np.float64)) for x in operands]) <= far(
        row.name, function.build.facts.fma
    )
    with np.errstate(all="ignore"):
        slack = unit * size
    errors = np.where(near, ulp_errors(value, exact, slack), 0.0)
    allowed = 1.0 if info.bits == 16 else row.ulp64 if info.bits == 64 else row.ulp
    faults = int((errors > max(allowed, 0.5)).sum())
    if rounded is not None:
        faults += int(_differ(value, rounded).sum())
    with np.errstate(all="ignore"):
        misrounded = int((near & _differ(value, exact.astype(value.dtype))).sum())
    largest = float(errors.max(initial=0.0))
    return Sample(
        row.name, name, function.build.name, value.size, largest, allowed, misrounded, faults
    )


def _differ(a: Array, b: Array) -> Array:
    return (a != b) & ~(np.isnan(a) & np.isnan(b))


def _drawn(count: int, spreads: Sequence[float], kind: Any, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    parts = [
        10.0 ** rng.uniform(-spread, spread, count) * rng.choice([-1, 1], count)
        for spread in spreads
    ]
    return np.concatenate([*parts, rng.uniform(-2, 2, count)]).astype(kind)
