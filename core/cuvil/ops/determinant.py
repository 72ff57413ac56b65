"""Determinants of square matrices, by elimination with the greatest pivot of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import KernelCx, Scratch, wide


def _infer(t: Sequence[TensorType], _: Attrs) -> list[TensorType]:
    if len(t) != 1 or t[0].rank < 2 or not t[0].dtype.is_float:
        raise ValueError(f"determinant takes matrices of floats, not {shapes(t)}")
    rows, columns = t[0].dims[-2:]
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ValueError(f"determinant of a matrix of {rows} by {columns}")
    return [t[0].with_dims(t[0].dims[:-2])]


def _evaluate(x: Sequence[Any], _: Attrs) -> list[Any]:
    return [np.asarray(np.linalg.det(wide(x[0]))).astype(x[0].dtype)]


class _Matrix:
    """One matrix in scratch, row by row."""

    def __init__(self, cx: KernelCx, index: tuple[Index, ...], kind: str) -> None:
        self.b, dims = cx.b, cx.operand_types[0].dims
        self.n = self.b.dim(dims[-1])
        self.room: Scratch = cx.scratch(dims[-1] * dims[-1], kind)
        with self.b.loop(0, self.n) as row, self.b.loop(0, self.n) as column:
            value = self.b.cast(cx.operand(0, (*index, row.iv, column.iv)), kind)
            self.room.store(value, self.at(row.iv, column.iv))

    def at(self, row: Index, column: Index) -> Index:
        return self.b.add(self.b.mul(row, self.n), column)

    def load(self, row: Index, column: Index) -> Value:
        return self.room.load(self.at(row, column))

    def pivot(self, column: Index) -> Value:
        """The row, from the diagonal on, with the greatest element of a column."""
        b = self.b
        start = b.scalar("abs", self.load(column, column))
        with b.loop(b.add(column, 1), self.n, [b.value(column), start]) as rows:
            size = b.scalar("abs", self.load(rows.iv, column))
            greater = b.to_index(b.scalar("gt", size, rows.args[1], result="bool"))
            step = b.mul(greater, b.sub(rows.iv, rows.args[0]))
            best = b.scalar("max", size, rows.args[1])
            rows.yield_(b.value(b.add(rows.args[0], step)), best)
        return rows.results[0]

    def swap(self, first: Index, second: Index) -> None:
        with self.b.loop(0, self.n) as column:
            a, c = self.load(first, column.iv), self.load(second, column.iv)
            self.room.store(c, self.at(first, column.iv))
            self.room.store(a, self.at(second, column.iv))

    def eliminate(self, at: Index, kind: str) -> None:
        """Makes the column below the diagonal zero; a pivot of zero leaves it."""
        b = self.b
        pivot, one, zero = self.load(at, at), b.const(1, kind), b.const(0, kind)
        none = b.scalar("eq", pivot, zero, result="bool")
        factor = b.scalar("div", one, b.scalar("select", none, one, pivot, result=kind))
        with b.loop(b.add(at, 1), self.n) as row:
            share = b.scalar("mul", self.load(row.iv, at), factor)
            with b.loop(b.add(at, 1), self.n) as column:
                part = b.scalar("mul", share, self.load(at, column.iv))
                rest = b.scalar("sub", self.load(row.iv, column.iv), part)
                self.room.store(rest, self.at(row.iv, column.iv))


def _kernel(cx: KernelCx) -> None:
    b, kind = cx.b, cx.operand_types[0].dtype.compute.name
    index = cx.tasks(cx.result_type.dims)
    matrix = _Matrix(cx, index, kind)
    with b.loop(0, matrix.n, [b.const(1, kind)]) as steps:
        row = matrix.pivot(steps.iv)
        matrix.swap(steps.iv, row)
        pivot = matrix.load(steps.iv, steps.iv)
        same = b.compare("eq", row, steps.iv)
        signed = b.scalar("select", same, pivot, b.scalar("neg", pivot), result=kind)
        matrix.eliminate(steps.iv, kind)
        steps.yield_(b.scalar("mul", steps.args[0], signed))
    cx.store(b.cast(steps.results[0], cx.result_type.dtype.name), index)


DETERMINANT = Primitive(
    name="determinant",  # of the matrices in the last two axes; 1 for a matrix of no elements
    infer=_infer,
    evaluate=_evaluate,
    kernel=_kernel,
    tags=frozenset({"anchor"}),
    tolerance=1e-4,
    computes=True,
).register()
