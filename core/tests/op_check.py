"""Checks a primitive's nest lowering against its numpy meaning, without compiling anything.

With CUVIL_OPS=native in the environment the kernels are compiled and run instead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from native_run import run_native

import cuvil.ops  # registers the primitives
from cuvil.ir.build import Builder
from cuvil.ir.dims import evaluate, symbol
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.graph import new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.record import PRIMITIVES, tensor_type
from cuvil.ir.types import TensorType
from cuvil.ops.interpreter import evaluate_op
from cuvil.ops.lower_one import lower_op
from cuvil.ops.lowering import wide
from cuvil.ops.nest_interpreter import run_kernel as interpret

Array = np.ndarray[Any, Any]
run_kernel = run_native if os.environ.get("CUVIL_OPS") == "native" else interpret


def rand(*shape: int, dtype: str = "f4", seed: int = 0) -> Array:
    """Seeded values: normal floats, small integers of both signs, or bools."""
    rng = np.random.default_rng(seed + sum(shape))
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return rng.integers(0 if kind.kind == "u" else -9, 10, shape).astype(kind)
    return np.asarray(rng.standard_normal(shape)).astype(kind)


def make_op(name: str, arrays: Sequence[Array], attrs: dict[str, Any], symbolic: bool) -> Any:
    """The op on operands of these shapes; symbolic: every extent above 1 becomes a symbol, but
    for the length of index tuples, which must be known."""
    types = {
        f"x{i}": _type(a, symbolic, 1 if i == 1 and name.endswith("_nd") else 0)
        for i, a in enumerate(arrays)
    }
    graph = new_graph("g", types, Pool())
    result = Builder(graph.block, graph.pool, "here").emit(name, graph.inputs, **attrs)
    op = (result[0] if isinstance(result, tuple) else result).owner
    op.verify()
    return op


def _type(array: Array, symbolic: bool, fixed: int) -> TensorType:
    """fixed: how many of the last dims stay numbers."""
    free = len(array.shape) - fixed if symbolic else 0
    dims = [symbol(f"n{d}") if i < free and d > 1 else d for i, d in enumerate(array.shape)]
    return TensorType.of(dims, from_numpy(array.dtype))


def environment(arrays: Sequence[Array]) -> dict[str, int]:
    return {f"n{d}": d for a in arrays for d in a.shape}


def meaning(name: str, *arrays: Array, **attrs: Any) -> tuple[Array, ...]:
    """What the record's numpy meaning gives."""
    return evaluate_op(make_op(name, arrays, attrs, False), arrays, {})


def lowered(op: Any, arrays: Sequence[Array], element: bool) -> tuple[int, tuple[Array, ...]]:
    """(status, results) of the op's kernel, run by the nest interpreter."""
    env = environment(arrays)
    cx = lower_op(op, element=element)
    cx.kernel.verify()
    results = [
        np.zeros([evaluate(d, env) for d in t.dims], t.dtype.numpy)
        for t in map(tensor_type, op.results)
    ]
    arena = [np.zeros(evaluate(n, env), TensorType.of((), d).dtype.numpy) for d, n in cx.arena]
    flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    status = run_kernel(cx.kernel, [*flat, *(r.reshape(-1) for r in results), *arena], env)
    return status, tuple(results)


def check(name: str, *arrays: Array, symbolic: bool = True, **attrs: Any) -> tuple[Array, ...]:
    """Every lowering of the op, with static and with symbolic dims, gives what numpy gives."""
    want = meaning(name, *arrays, **attrs)
    record = PRIMITIVES[name]
    forms = [f for f in (True, False) if (record.element if f else record.kernel) is not None]
    for free in (False, True) if symbolic else (False,):
        op = make_op(name, arrays, attrs, free)
        for got, expected in zip(evaluate_op(op, arrays, environment(arrays)), want, strict=True):
            same(got, expected)
        for element in forms:
            status, got = lowered(op, arrays, element)
            assert status == 0
            for g, w in zip(got, want, strict=True):
                same(g, w, record.tolerance)
    return want


def same(got: Array, want: Array, tolerance: float = 0.0) -> None:
    """Equal dtype and shape; values within a tolerance that a short float type widens."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if tolerance == 0 or want.dtype.kind in "biu":
        np.testing.assert_array_equal(wide(got), wide(want))  # NaN of bfloat16 never equals NaN
        return
    short = {"float16": 2e-3, "bfloat16": 2e-2}.get(want.dtype.name, 0.0)
    limit = max(tolerance, short)
    pair = [np.asarray(a, np.float64) for a in (got, want)]
    np.testing.assert_allclose(*pair, rtol=limit, atol=limit)


assert cuvil.ops is not None
