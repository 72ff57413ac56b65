"""`py.map`, `py.reduce` and products of matrices: loops over the elements of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from cuvil.codegen.llvm_util import F32, F64, I1, I8, I64, address, for_range, i64
from cuvil.codegen.python.arrays import new_array
from cuvil.codegen.python.emit import Applied, Emit, function
from cuvil.codegen.python.scalars import cast
from cuvil.codegen.python.values import (
    in_memory,
    load_element,
    scalar_type,
    shape_of,
    store_element,
    strides_of,
)
from cuvil.ir.py_types import Array, Scalar, Type

Body = Callable[[list[ir.Value]], ir.Value]
REASSOCIATE = ("reassoc",)


@dataclass(frozen=True)
class Operand:
    """An array that is walked: its extents and strides are of its own rank."""

    kind: Array
    data: ir.Value
    shape: list[ir.Value]
    strides: list[ir.Value]


def operand(e: Emit, value: ir.Value, kind: Type) -> Operand:
    """An array's parts."""
    kind = in_memory(kind)
    assert isinstance(kind, Array)
    data = e.b.extract_value(value, 0)
    return Operand(kind, data, shape_of(e.b, value, kind.rank), strides_of(e.b, value, kind))


def broadcast_shape(e: Emit, operands: Sequence[Operand], site: int) -> list[ir.Value]:
    """The common extents of arrays; the failure where there are none."""
    rank = max(o.kind.rank for o in operands)
    shape: list[ir.Value] = []
    for axis in range(rank):
        extents = [
            o.shape[axis - rank + o.kind.rank] for o in operands if axis >= rank - o.kind.rank
        ]
        found = extents[0]
        for extent in extents[1:]:
            found = e.b.select(e.b.icmp_signed("==", found, i64(1)), extent, found)
        for extent in extents if len(extents) > 1 else ():
            _check_extent(e, extent, found, site)
        shape.append(found)
    return shape


def _check_extent(e: Emit, extent: ir.Value, whole: ir.Value, site: int) -> None:
    differs = e.b.icmp_signed("!=", extent, whole)
    e.fail_if(e.b.and_(differs, e.b.icmp_signed("!=", extent, i64(1))), site)


def _stays(e: Emit, operands: Sequence[Operand], shape: Sequence[ir.Value]) -> ir.Value | None:
    """Whether all operands are dense and of the whole shape; None where that cannot be."""
    if not all(o.kind.contiguous and o.kind.rank == len(shape) for o in operands):
        return None
    same: ir.Value = ir.Constant(I1, 1)
    for o in operands:
        for extent, whole in zip(o.shape, shape, strict=True):
            same = e.b.and_(same, e.b.icmp_signed("==", extent, whole))
    return same


def walk(
    e: Emit,
    operands: Sequence[Operand],
    shape: Sequence[ir.Value],
    visit: Callable[[list[ir.Value], ir.Value], None],
) -> None:
    """Code that visits every element in C order: addresses in the operands, place in C order."""
    dense = _stays(e, operands, shape)
    if dense is None:
        _walk_strided(e, operands, shape, visit)
        return
    with e.b.if_else(dense) as (then, otherwise):
        with then:
            total = i64(1)
            for extent in shape:
                total = e.b.mul(total, extent)
            with for_range(e.b, i64(0), total) as i:
                visit([_at(e, o.data, i, i64(_size(o))) for o in operands], i)
        with otherwise:
            _walk_strided(e, operands, shape, visit)


def _size(o: Operand) -> int:
    return np.dtype(o.kind.dtype).itemsize


def _at(e: Emit, data: ir.Value, index: ir.Value, stride: ir.Value) -> ir.Value:
    return address(e.b, data, e.b.mul(index, stride, flags=("nsw",)), I8)


def _walk_strided(
    e: Emit,
    operands: Sequence[Operand],
    shape: Sequence[ir.Value],
    visit: Callable[[list[ir.Value], ir.Value], None],
) -> None:
    rank = len(shape)
    steps = [[_step(e, o, axis - rank + o.kind.rank, shape[axis]) for o in operands]
             for axis in range(rank)]  # fmt: skip

    def nest(axis: int, places: list[ir.Value], flat: ir.Value) -> None:
        if axis == rank:
            visit(places, flat)
            return
        with for_range(e.b, i64(0), shape[axis]) as i:
            inner = [_at(e, p, i, s) for p, s in zip(places, steps[axis], strict=True)]
            nest(axis + 1, inner, e.b.add(e.b.mul(flat, shape[axis]), i))

    nest(0, [o.data for o in operands], i64(0))


def _step(e: Emit, o: Operand, axis: int, whole: ir.Value) -> ir.Value:
    """The stride along an axis of the whole, 0 where the operand repeats."""
    if axis < 0:
        return i64(0)
    repeats = e.b.icmp_signed("!=", o.shape[axis], whole)
    return e.b.select(repeats, i64(0), o.strides[axis])


def emit_map(
    e: Emit, values: Sequence[ir.Value], kinds: Sequence[Type], result: Type | None, site: int,
    body: Body,
) -> ir.Value | None:  # fmt: skip
    """A new array of type `result`, or, where that is None, the first value is written."""
    operands = [operand(e, v, k) for v, k in zip(values, kinds, strict=True)]
    made: ir.Value | None = None
    if result is None:
        shape = operands[0].shape
        for o in operands[1:]:
            for axis in range(o.kind.rank):
                _check_extent(e, o.shape[axis], shape[axis - o.kind.rank + len(shape)], site)
    else:
        assert isinstance(result, Array)
        shape = broadcast_shape(e, operands, site)
        made = new_array(e, result, shape, False, site)
        operands.insert(0, operand(e, made, result))

    def visit(places: list[ir.Value], _flat: ir.Value) -> None:
        pairs = list(zip(places, operands, strict=True))
        elements = [load_element(e.b, p, o.kind.dtype) for p, o in pairs[1:]]
        store_element(e.b, body(elements), places[0], operands[0].kind.dtype)

    walk(e, operands, shape, visit)
    return made


def emit_reduce(
    e: Emit, fn: str, values: Sequence[ir.Value], kinds: Sequence[Type], element: Type,
    result: Type, site: int, body: Body,
) -> ir.Value:  # fmt: skip
    """A number from all elements. element: what the body gives."""
    assert isinstance(element, Scalar) and isinstance(result, Scalar)
    operands = [operand(e, v, k) for v, k in zip(values, kinds, strict=True)]
    shape = broadcast_shape(e, operands, site)
    if fn in ("max", "min", "argmax", "argmin"):
        for extent in shape:
            e.fail_if(e.b.icmp_signed("==", extent, i64(0)), site)
    reduction = _Reduction(e, fn, np.dtype(element.dtype), np.dtype(result.dtype))

    def visit(places: list[ir.Value], flat: ir.Value) -> None:
        pairs = zip(places, operands, strict=True)
        reduction.take(body([load_element(e.b, p, o.kind.dtype) for p, o in pairs]), flat)

    walk(e, operands, shape, visit)
    return reduction.result()


class _Reduction:
    """A value that elements are taken into. Floats are summed in double, in any order."""

    def __init__(self, e: Emit, fn: str, element: np.dtype, result: np.dtype) -> None:
        self.e, self.fn, self.element, self.final = e, fn, element, result
        sums = fn in ("sum", "prod", "any", "all")
        self.kind = result if sums else element
        if sums and result.kind == "f":
            self.kind = np.dtype("d")
        self.value = e.variable(scalar_type(self.kind.char))
        self.place = e.variable(I64)
        e.b.store(self._first(), self.value)
        e.b.store(i64(-1), self.place)

    def _first(self) -> ir.Constant:
        kind = scalar_type(self.kind.char)
        if self.fn in ("max", "min"):
            return ir.Constant(kind, self._lowest())
        if self.fn in ("argmax", "argmin"):
            return ir.Constant(kind, 0)
        return ir.Constant(kind, 1 if self.fn in ("prod", "all") else 0)

    def _lowest(self) -> float | int:
        if self.kind.kind == "f":
            return float("-inf") if self.fn == "max" else float("inf")
        if self.kind.kind == "b":
            return int(self.fn == "min")
        limits = np.iinfo(self.kind)
        return int(limits.min if self.fn == "max" else limits.max)

    def take(self, value: ir.Value, flat: ir.Value) -> None:
        e, kind = self.e, scalar_type(self.kind.char)
        before = e.b.load(self.value, typ=kind)
        value = cast(e, value, self.element, self.kind)
        if self.fn in ("argmax", "argmin"):
            place = e.b.load(self.place, typ=I64)
            better = self._better(value, before, place)
            e.b.store(e.b.select(better, flat, place), self.place)
            e.b.store(e.b.select(better, value, before), self.value)
            return
        e.b.store(self._joined(before, value), self.value)

    def _better(self, value: ir.Value, before: ir.Value, place: ir.Value) -> ir.Value:
        """The first of all, or beyond the best so far; the first nan is beyond all."""
        e, sign = self.e, ">" if self.fn == "argmax" else "<"
        first = e.b.icmp_signed("<", place, i64(0))
        if self.kind.kind != "f":
            compare = e.b.icmp_signed if self.kind.kind == "i" else e.b.icmp_unsigned
            return e.b.or_(first, compare(sign, value, before))
        number = e.b.fcmp_ordered("ord", before, before)
        beyond = e.b.and_(number, e.b.fcmp_unordered(sign, value, before))
        return e.b.or_(first, beyond)

    def _joined(self, a: ir.Value, b: ir.Value) -> ir.Value:
        e, is_float = self.e, self.kind.kind == "f"
        if self.fn == "sum":
            return e.b.fadd(a, b, flags=REASSOCIATE) if is_float else e.b.add(a, b)
        if self.fn == "prod":
            return e.b.fmul(a, b, flags=REASSOCIATE) if is_float else e.b.mul(a, b)
        if self.fn == "any":
            return e.b.or_(a, b)
        if self.fn == "all":
            return e.b.and_(a, b)
        if is_float:
            return e.intrinsic("maximum" if self.fn == "max" else "minimum", [a, b])
        compare = e.b.icmp_signed if self.kind.kind == "i" else e.b.icmp_unsigned
        return e.b.select(compare(">" if self.fn == "max" else "<", a, b), a, b)

    def result(self) -> ir.Value:
        e = self.e
        if self.fn in ("argmax", "argmin"):
            return e.b.load(self.place, typ=I64)
        value = e.b.load(self.value, typ=scalar_type(self.kind.char))
        return cast(e, value, self.kind, self.final)


@function("array.matmul")
def _matmul(e: Emit, op: Applied, args: list[ir.Value]) -> ir.Value:
    """Of two matrices of the result's element type."""
    left, right = (operand(e, v, k) for v, k in zip(args, op.kinds, strict=True))
    kind = op.results[0]
    assert isinstance(kind, Array)
    (rows, inner), columns = left.shape, right.shape[1]
    e.fail_if(e.b.icmp_signed("!=", inner, right.shape[0]), op.site)
    made = new_array(e, kind, [rows, columns], True, op.site)
    out = operand(e, made, kind)
    is_float = scalar_type(kind.dtype) in (F32, F64)
    with for_range(e.b, i64(0), rows) as i, for_range(e.b, i64(0), inner) as k:
        a = _at(e, _at(e, left.data, i, left.strides[0]), k, left.strides[1])
        factor = load_element(e.b, a, kind.dtype)
        line, sums = _at(e, right.data, k, right.strides[0]), _at(e, out.data, i, out.strides[0])
        with for_range(e.b, i64(0), columns) as j:
            other = load_element(e.b, _at(e, line, j, right.strides[1]), kind.dtype)
            place = _at(e, sums, j, out.strides[1])
            before = load_element(e.b, place, kind.dtype)
            product = e.b.fmul(factor, other) if is_float else e.b.mul(factor, other)
            after = e.b.fadd(before, product) if is_float else e.b.add(before, product)
            store_element(e.b, after, place, kind.dtype)
    return made
