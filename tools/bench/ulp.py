"""Largest errors of the compiled scalar functions, in units in the last place (ulp).

    python tools/bench/ulp.py [NAME ...] [--dtype f32] [--step 97] [--cpu CPU --fma]

f32 functions run over every STEP-th bit pattern (1: all 2^32) of the floats, whatever their sign,
NaN and infinities included, against the meaning in float64. f64 functions run over random numbers
of all magnitudes against the same function in extended precision where numpy has it (x86 hosts),
else against the meaning. Functions of two operands get random pairs. What a row's slack
allows is taken off first; sin, cos and tan are measured on their documented domain. The last
column is the time per element of the vectorised loop over 128 KiB or 256 KiB, roughly.
"""

from __future__ import annotations

import argparse
import math
import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from cuvil.codegen.scalars.array_functions import ArrayFunctions, Request
from cuvil.ops.scalars import SCALARS, Scalar, evaluate

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 20
_TURNS = 1.6e6  # the documented domain of sin, cos and tan
_SPREAD = {"pow": 3.0}  # of the random operands of functions of two operands, in decades
_EXTENDED = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "expm1": np.expm1,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": lambda x: np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)),
}  # fmt: skip


def ulp_errors(value: Array, exact: Array, slack: Array | float = 0.0) -> Array:
    """|value - exact| - slack in last places of `value`'s type at `exact` (a wider type).

    Equal infinities and NaN for NaN count 0; a special value missed counts infinity. A result
    that overflows beside the largest number counts by the distance to 2**emax.
    """
    with np.errstate(all="ignore"):
        return _ulp_errors(value, exact, slack)


def _ulp_errors(value: Array, exact: Array, slack: Array | float) -> Array:
    info = np.finfo(value.dtype)
    rounded = exact.astype(value.dtype)
    same = (rounded == value) | (np.isnan(rounded) & np.isnan(value))
    odd = ~same & (np.isnan(value) | np.isnan(rounded))
    size = np.maximum(np.abs(exact), exact.dtype.type(info.tiny))
    place = np.exp2(np.floor(np.log2(size)) - info.nmant)
    limit = exact.dtype.type(2.0) ** info.maxexp
    seen = np.clip(value.astype(exact.dtype), -limit, limit)
    error = np.maximum(np.abs(seen - np.clip(exact, -limit, limit)) - slack, 0.0) / place
    return np.where(odd, np.inf, np.where(np.isnan(error), 0.0, error))


def measure(row: Scalar, functions: ArrayFunctions, request: Request, step: int) -> tuple[Any, ...]:
    """(largest error, the operands where it occurs) over the samples."""
    worst, where = -1.0, None
    for operands in _samples(row, request.dtype, step):
        if row.name in ("sin", "cos", "tan"):
            near = np.abs(operands[0]) <= _TURNS
            operands = (np.where(near, operands[0], np.inf).astype(operands[0].dtype),)
        value = functions(request, *operands)
        info = np.finfo(value.dtype)
        unit = row.slack * float(info.eps) + float(info.smallest_subnormal) * bool(row.expansion)
        slack = unit * np.maximum(1.0, np.abs(operands[0]))
        error = ulp_errors(value, _exact(row, request.dtype, operands), slack)
        i = int(np.argmax(error))
        if error[i] > worst:
            worst, where = float(error[i]), tuple(x[i] for x in operands)
    return worst, where


def _samples(row: Scalar, dtype: str, step: int) -> Any:
    if dtype == "f64" or row.arity == 2:
        yield from _random(row, dtype)
        return
    for start in range(0, 1 << 32, _CHUNK * step):
        bits = np.arange(start, min(start + _CHUNK * step, 1 << 32), step, dtype=np.uint64)
        yield (bits.astype(np.uint32).view(np.float32),)


def _random(row: Scalar, dtype: str) -> Any:
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    rng = np.random.default_rng(1)
    for spread in (0.5, 1.5, _SPREAD.get(row.name, 8.0)):
        count = 1 << 17
        draws = [
            10.0 ** rng.uniform(-spread, spread, count) * rng.choice([-1, 1], count)
            for _ in range(row.arity)
        ]
        yield tuple(np.ascontiguousarray(d.astype(kind)) for d in draws)
        yield tuple(rng.uniform(-2, 2, count).astype(kind) for _ in range(row.arity))


def _exact(row: Scalar, dtype: str, operands: tuple[Array, ...]) -> Array:
    if dtype == "f64" and row.name in _EXTENDED:
        with np.errstate(all="ignore"):
            wide = [x.astype(np.longdouble) for x in operands]
            return np.asarray(_EXTENDED[row.name](*wide)).astype(np.longdouble)
    with np.errstate(all="ignore"):
        return evaluate(row.name, *[x.astype(np.float64) for x in operands])


def nanoseconds(functions: ArrayFunctions, request: Request, arity: int) -> float:
    """Time per element over 32768 numbers, the best of several runs."""
    kind = {"f32": np.float32, "f64": np.float64}[request.dtype]
    operands = [np.linspace(-3, 3, 32768, dtype=kind) for _ in range(arity)]
    best = math.inf
    for _ in range(30):
        begin = time.perf_counter()
        for _ in range(3):
            functions(request, *operands)
        best = min(best, time.perf_counter() - begin)
    return best / 3 / 32768 * 1e9


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions (default: all inexact ones)")
    parser.add_argument("--dtype", default="f32", choices=["f32", "f64"])
    parser.add_argument("--step", type=int, default=997, help="sample every STEP-th f32")
    parser.add_argument("--cpu", default="", help="as LLVM names it (default: baseline)")
    parser.add_argument("--features", default="", help="as LLVM takes them: +a,-b")
    parser.add_argument("--fma", action="store_true", help="the target has fused multiply-add")
    options = parser.parse_args()
    facts = SimpleNamespace(fma=options.fma)
    rows = [SCALARS[n] for n in options.names] or [
        r for r in SCALARS.values() if r.ulp and options.dtype in r.dtypes
    ]
    requests = [Request(r.name, options.dtype) for r in rows]
    functions = ArrayFunctions(requests, facts, options.cpu, options.features)
    print(f"{'function':<18}{'bound':>7}{'max ulp':>12}{'ns/element':>12}  at")
    for row, request in zip(rows, requests, strict=True):
        worst, where = measure(row, functions, request, options.step)
        bound = row.ulp64 if options.dtype == "f64" else row.ulp
        spent = nanoseconds(functions, request, row.arity)
        print(f"{row.name:<18}{bound:>7.1f}{worst:>12.3f}{spent:>12.3f}  {where}", flush=True)


if __name__ == "__main__":
    main()
