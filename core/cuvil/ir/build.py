"""Building tensor programs: `b.add(x, y)` makes the op, infers its type, returns its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from cuvil.ir.attrs import read_attrs, write_attrs
from cuvil.ir.dims import Dim
from cuvil.ir.dtypes import from_numpy
from cuvil.ir.graph import YieldOp
from cuvil.ir.pool import Pool
from cuvil.ir.record import PRIMITIVES, operation, tensor_type
from cuvil.ir.string_tables import string_table
from cuvil.ir.types import TensorType

INLINE_LIMIT = 16  # constants of at most so many elements stand in the IR itself


def location(name: str) -> LocationAttr:
    """The source location that names an ONNX node or a line of the user's."""
    return NameLoc(StringAttr(name), UnknownLoc())


def location_name(op: Operation) -> str:
    """The user's name of an op's origin, or its own name where there is none."""
    loc = op.location
    return loc.desc.data if isinstance(loc, NameLoc) else op.name


class Builder:
    """Appends ops of the `cuvil` dialect at an insertion point.

    Every primitive is a method: `b.transpose(x, perm=(1, 0))`. One result is returned as a value,
    several as a tuple. `infer` errors (ValueError) pass through: the caller knows the node.
    """

    def __init__(self, point: InsertPoint | Block, pool: Pool, loc: str | None = None) -> None:
        self.point = InsertPoint.at_end(point) if isinstance(point, Block) else point
        self.pool = pool
        self.loc = location(loc) if loc else None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or name.rstrip("_") not in PRIMITIVES:
            raise AttributeError(f"no primitive '{name}'")
        return lambda *operands, **attrs: self.emit(name.rstrip("_"), operands, **attrs)

    def insert(self, op: Operation) -> Operation:
        """Inserts an op made elsewhere at the insertion point."""
        if self.point.insert_before is None:
            self.point.block.add_op(op)
        else:
            self.point.block.insert_op_before(op, self.point.insert_before)
        return op

    def emit(self, name: str, operands: Sequence[SSAValue], **attrs: Any) -> Any:
        """One primitive on these operands; raises ValueError where types do not fit."""
        record = PRIMITIVES[name]
        properties = write_attrs(record.name, record.attrs, attrs)
        types = record.infer(
            [tensor_type(v) for v in operands], read_attrs(record.attrs, properties)
        )
        op = operation(name).create(
            operands=list(operands),
            result_types=list(types),
            properties=properties,
            location=self.loc,
        )
        self.insert(op)
        return op.results[0] if len(op.results) == 1 else tuple(op.results)

    def emit_regions(
        self,
        name: str,
        operands: Sequence[SSAValue],
        types: Sequence[TensorType],
        regions: Sequence[Region],
        **attrs: Any,
    ) -> tuple[SSAValue, ...]:
        """A control primitive: result types are given, as they follow from the regions."""
        record = PRIMITIVES[name]
        op = operation(name).create(
            operands=list(operands),
            result_types=list(types),
            properties=write_attrs(record.name, record.attrs, attrs),
            regions=list(regions),
            location=self.loc,
        )
        self.insert(op)
        return tuple(op.results)

    def yield_(self, *values: SSAValue) -> None:
        """Ends a region."""
        self.insert(YieldOp.create(operands=list(values)))

    def const(self, value: Any, dtype: str | None = None) -> SSAValue:
        """A constant from a number, a str or an array; large ones become references into the
        pool."""
        array = np.asarray(value, object if isinstance(value, str) else None)
        if array.dtype.kind in "OUT":
            return self.strings(array.astype(object))
        if dtype == "string":  # the zero of strings
            return self.strings(np.full(array.shape, "", object))
        if dtype is not None:
            array = array.astype(TensorType.of((), dtype).dtype.numpy)
        if array.size <= INLINE_LIMIT:
            element = from_numpy(array.dtype).name
            numbers = tuple(float(x) for x in array.ravel())
            if element in ("i64", "u64", "i32", "u32"):
                ints = tuple(int(x) for x in array.ravel())
                return self.emit("constant", (), shape=array.shape, dtype=element, ints=ints)
            return self.emit("constant", (), shape=array.shape, dtype=element, floats=numbers)
        return self.pooled(self.pool.add_array(array).key)

    def strings(self, array: np.ndarray) -> SSAValue:
        """A constant of strings, from an array of str."""
        table = self.table(string_table(array.ravel()))
        return self.emit("strings", [table], shape=array.shape)

    def table(self, data: np.ndarray) -> SSAValue:
        """A vector of bytes that kernels read in place: always in the pool."""
        return self.pooled(self.pool.add_array(data).key)

    def pooled(self, key: str) -> SSAValue:
        """A reference to a constant that is already in the pool."""
        constant = self.pool.get(key)
        return self.emit("constant", (), key=key, shape=constant.shape, dtype=constant.dtype)

    def scalar(self, value: float | int | bool, like: SSAValue | str) -> SSAValue:
        """A rank-0 constant of the given dtype, or of that of a value."""
        element = like if isinstance(like, str) else tensor_type(like).dtype.name
        return self.const(np.asarray(value), element)

    def dims_of(self, value: SSAValue) -> tuple[Dim, ...]:
        return tensor_type(value).dims

    @contextmanager
    def at(self, loc: str) -> Iterator[Builder]:
        """Ops built inside carry this location."""
        before, self.loc = self.loc, location(loc)
        try:
            yield self
        finally:
            self.loc = before


def constant_array(op: Operation, pool: Pool) -> np.ndarray:
    """The value of a `cuvil.constant`, inline or from the pool (read-only)."""
    record = PRIMITIVES["constant"]
    attrs = read_attrs(record.attrs, op.properties)
    if attrs.key:
        return pool.array(attrs.key)
    kind = TensorType.of((), attrs.dtype).dtype.numpy
    if attrs.ints is None:
        return np.array(attrs.floats, kind).reshape(attrs.shape)
    return np.array(attrs.ints, np.int64).astype(kind).reshape(attrs.shape)  # u64 by its bits


def is_constant(value: SSAValue) -> bool:
    """Whether a value is the result of `cuvil.constant`. ValueError for what is no value."""
    tensor_type(value)
    return value.owner.name == "cuvil.constant" if isinstance(value.owner, Operation) else False
