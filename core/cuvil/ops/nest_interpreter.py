"""Runs `nest` kernels on numpy arrays, an element at a time: what a kernel means, for tests.

Scalars mean what the scalar table says; f16 and bf16 are rounded after every operation. Loads and
stores outside a buffer raise IndexError, a failed `nest.fail_if` is the returned status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cuvil.ir import nest
from cuvil.ir.dims import evaluate, product
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.types import BufferType, ElementType
from cuvil.ops import scalars


class _Run:
    """The state of one task."""

    def __init__(self, env: Mapping[str, int]) -> None:
        self.env = env
        self.values: dict[Value, Any] = {}
        self.status = 0

    def block(self, block: Block, args: Sequence[Any] = ()) -> list[Any]:
        """Runs a block's ops; returns what it yields."""
        self.values.update(zip(block.args, args, strict=True))
        for op in block.ops:
            if isinstance(op, nest.NestYieldOp):
                return [self.values[v] for v in op.operands]
            _RUN[op.name](self, op)
        return []

    def get(self, op: Operation, i: int) -> Any:
        return self.values[op.operands[i]]

    def set(self, op: Operation, value: Any) -> None:
        self.values[op.results[0]] = value


def _number(attribute: Any) -> Any:
    data = getattr(attribute, "data", None)
    return attribute.value.data if data is None else data


def _constant(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ConstantOp)
    value, kind = _number(op.properties["value"]), op.results[0].type
    run.set(op, kind.dtype.numpy.type(value) if isinstance(kind, ElementType) else int(value))


def _dim(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.DimOp)
    run.set(op, evaluate(op.expr.data[0], run.env))


def _divided(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def checked(a: int, b: int) -> int:
        if a < 0 or b < 0:
            raise ArithmeticError(f"div and mod are of non-negative numbers, not {a} and {b}")
        return operation(a, b or 1)

    return checked


_INDEX: dict[str, Callable[[int, int], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divided(lambda a, b: a // b),
    "mod": _divided(lambda a, b: a % b),
    "min": min,
    "max": max,
    "lt": lambda a, b: np.bool_(a < b),
    "le": lambda a, b: np.bool_(a <= b),
    "eq": lambda a, b: np.bool_(a == b),
}


def _index(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.IndexOp)
    run.set(op, _INDEX[op.fn.data](run.get(op, 0), run.get(op, 1)))


def _scalar(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ScalarOp)
    params = {k: _number(v) for k, v in op.params.data.items()} if op.params else {}
    result = scalars.evaluate(op.fn.data, *(run.values[v] for v in op.operands), **params)
    kind = op.results[0].type
    if not isinstance(kind, ElementType) or result.dtype != kind.dtype.numpy:
        raise TypeError(f"scalar {op.fn.data} gives {result.dtype}, but its type is {kind}")
    run.set(op, result[()])


def _convert(run: _Run, op: Operation) -> None:
    kind, value = op.results[0].type, run.get(op, 0)
    run.set(op, kind.dtype.numpy.type(value) if isinstance(kind, ElementType) else int(value))


def _place(run: _Run, op: Operation, at: int) -> tuple[Any, int]:
    buffer, offset = run.get(op, at), run.get(op, at + 1)
    if not 0 <= offset < buffer.size:
        raise IndexError(f"{op.name} at {offset} of a buffer of {buffer.size} elements")
    return buffer, offset


def _load(run: _Run, op: Operation) -> None:
    buffer, offset = _place(run, op, 0)
    run.set(op, buffer[offset])


def _store(run: _Run, op: Operation) -> None:
    buffer, offset = _place(run, op, 1)
    value = run.get(op, 0)
    if value.dtype != buffer.dtype:
        raise TypeError(f"{value.dtype} stored into a buffer of {buffer.dtype}")
    buffer[offset] = value


def _for(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ForOp)
    carried = [run.values[v] for v in op.carried]
    for iv in range(run.get(op, 0), run.get(op, 1), op.step.value.data):
        carried = run.block(op.body.block, [iv, *carried])
    run.values.update(zip(op.results, carried, strict=True))


def _if(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.IfOp)
    chosen = op.then if run.get(op, 0) else op.orelse
    run.values.update(zip(op.results, run.block(chosen.block), strict=True))


def _fail_if(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.FailIfOp)
    if run.get(op, 0):
        run.status = op.status.value.data


def _scratch(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ScratchOp) and isinstance(op.result.type, BufferType)
    kind = op.result.type.dtype
    run.set(op, np.empty(evaluate(op.bytes.data[0], run.env) // kind.size, kind.numpy))


_RUN: dict[str, Callable[[_Run, Operation], None]] = {
    "nest.dim": _dim,
    "nest.constant": _constant,
    "nest.index": _index,
    "nest.scalar": _scalar,
    "nest.convert": _convert,
    "nest.load": _load,
    "nest.store": _store,
    "nest.for": _for,
    "nest.if": _if,
    "nest.fail_if": _fail_if,
    "nest.scratch": _scratch,
}


def run_kernel(
    kernel: nest.KernelOp,
    buffers: Sequence[np.ndarray[Any, Any]],
    env: Mapping[str, int] | None = None,
) -> int:
    """Runs every task on these flat arrays, in order; returns 0 or the last failing status."""
    status = 0
    for task in range(evaluate(product(kernel.tasks.data), env or {})):
        run = _Run(env or {})
        run.block(kernel.body.block, [*buffers, task])
        status = run.status or status
    return status
