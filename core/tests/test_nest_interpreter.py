"""Parallel loops of the nest interpreter: side by side, with masks, and only if independent."""

from __future__ import annotations

import numpy as np
import pytest

from cuvil.ir.nest import KernelOp
from cuvil.ir.nest_build import NestBuilder, new_kernel
from cuvil.ops.nest_interpreter import run_kernel


def kernel(*dtypes: str) -> tuple[KernelOp, NestBuilder, list]:
    op, block = new_kernel("k", dtypes)
    return op, NestBuilder(block), list(block.args[:-1])


def shifted(by: int) -> KernelOp:
    """y[i + by] = x[i] for i below 10."""
    op, b, (x, y) = kernel("f32", "f32")
    with b.loop(0, 10, kind="parallel") as i:
        b.store(b.load(x, i.iv), y, b.add(i.iv, by))
    return op


def test_iterations_run_side_by_side() -> None:
    x, y = np.arange(10, dtype="f4"), np.zeros(12, "f4")
    assert run_kernel(shifted(2), [x, y]) == 0
    assert y.tolist() == [0, 0, *range(10)]


def test_in_place_is_independent() -> None:
    x = np.arange(10, dtype="f4")
    run_kernel(shifted(0), [x, x])
    assert x.tolist() == list(range(10))


def test_iterations_that_touch_each_other_are_refused() -> None:
    x = np.arange(12, dtype="f4")
    with pytest.raises(RuntimeError, match="not independent"):
        run_kernel(shifted(1), [x, x])


def test_all_iterations_to_one_place_are_refused() -> None:
    op, b, (x, y) = kernel("f32", "f32")
    with b.loop(0, 10, kind="parallel") as i:
        b.store(b.load(x, i.iv), y, 0)
    with pytest.raises(RuntimeError, match="not independent"):
        run_kernel(op, [np.zeros(10, "f4"), np.zeros(1, "f4")])


def test_outside_of_a_buffer() -> None:
    with pytest.raises(IndexError, match=r"nest\.store"):
        run_kernel(shifted(3), [np.zeros(10, "f4"), np.zeros(12, "f4")])


def test_a_branch_loads_only_where_it_is_taken() -> None:
    """y[i] = x[i - 3] where that exists, else -1: a pad."""
    op, b, (x, y) = kernel("f32", "f32")
    with b.loop(0, 9, kind="parallel") as i:
        inside = b.compare("le", 3, i.iv)
        value = b.if_(inside, lambda: b.load(x, b.sub(i.iv, 3)), lambda: b.const(-1, "f32"))
        b.store(value, y, i.iv)
    y_value = np.zeros(9, "f4")
    run_kernel(op, [np.arange(6, dtype="f4"), y_value])
    assert y_value.tolist() == [-1, -1, -1, 0, 1, 2, 3, 4, 5]


def test_a_loop_of_another_length_in_every_iteration() -> None:
    """y[i] = sum of x[j] for j from i to 2i."""
    op, b, (x, y) = kernel("i32", "i32")
    with b.loop(0, 6, kind="parallel") as i:
        with b.loop(i.iv, b.mul(i.iv, 2), [b.const(0, "i32")], kind="reduce") as j:
            j.yield_(b.scalar("add", j.args[0], b.load(x, j.iv)))
        b.store(j.results[0], y, i.iv)
    x_value, y_value = np.arange(10, dtype="i4") ** 2, np.zeros(6, "i4")
    run_kernel(op, [x_value, y_value])
    assert y_value.tolist() == [x_value[i : 2 * i].sum() for i in range(6)]


def test_one_failing_iteration_fails_the_kernel() -> None:
    op, b, (x,) = kernel("i64")
    with b.loop(0, 5, kind="parallel") as i:
        b.fail_if(b.scalar("lt", b.load(x, i.iv), b.const(0, "i64"), result="bool"), 7)
    assert run_kernel(op, [np.int64([1, 2, 3, 4, 5])]) == 0
    assert run_kernel(op, [np.int64([1, 2, -3, 4, 5])]) == 7
