"""Elements by pull: the value of a tensor at an index, inlined down to what lies in buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cuvil.ir.attrs import Attrs
from cuvil.ir.build import constant_array
from cuvil.ir.dims import Dim
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.pool import Pool
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.ir.types import TensorType
from cuvil.plan.layout import Layouts, contiguous

Given = Callable[[Sequence[Index]], Value]


def inline_constant(value: Value, pool: Pool) -> float | int | bool | None:
    """The number of a one-element constant, which stands in the kernel itself."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "cuvil.constant":
        return None
    if tensor_type(value).size != 1:
        return None
    return constant_array(owner, pool).reshape(()).item()


@dataclass
class Puller:
    """Computes elements of values in one kernel.

    buffers: values that lie in memory, by the strides of layouts. given: values that somebody else
    computes (an anchor's accumulator). run: gives the buffer that stands for the run. axes: how
    this kernel walks the axes (None: one by one).
    """

    b: NestBuilder
    pool: Pool
    buffers: Mapping[Value, Value]
    layouts: Layouts
    run: Callable[[], Value]
    given: dict[Value, Given] = field(default_factory=dict)
    axes: Axes | None = None
    _memo: dict[tuple[int, Value, tuple[Index, ...]], tuple[Block, Value]] = field(
        default_factory=dict
    )

    def type_of(self, value: Value) -> TensorType:
        kind = tensor_type(value)
        return self.axes.type_of(kind) if self.axes else kind

    def offset(self, value: Value, index: Sequence[Index]) -> Index:
        """Where in its buffer the element of a stored value at an index (as walked) lies."""
        if self.layouts.is_dense(value):
            return self.b.flatten(index, self.type_of(value).dims)
        strides: Sequence[Dim] = self.layouts.strides(value)
        if self.axes:
            strides = self.axes.strides_of(tensor_type(value), strides)
        offset: Index = 0
        for i, stride in zip(index, strides, strict=True):
            offset = self.b.add(offset, self.b.mul(i, self.b.dim(stride)))
        return offset

    def element(self, value: Value, index: Sequence[Index]) -> Value:
        """The element of `value` at a multi-index of its (reshaped) type."""
        key = tuple(index)
        for block in (self.b.block, *reversed(self.b.outer)):
            found = self._memo.get((id(block), value, key))
            if found is not None:
                return found[1]
        result = self._compute(value, index)
        self._memo[(id(self.b.block), value, key)] = (self.b.block, result)
        return result

    def element_of(self, op: Operation, index: Sequence[Index]) -> Value:
        """The element of an op's only result, computed even if that lies in a buffer too."""
        lower = of(op).element
        assert lower is not None, f"{op.name} has no element lowering"
        result: Value = lower(OpCx(self, op), index)
        return result

    def _compute(self, value: Value, index: Sequence[Index]) -> Value:
        if value in self.given:
            return self.given[value](index)
        number = inline_constant(value, self.pool)
        if number is not None:
            return self.b.const(number, tensor_type(value).dtype.name)
        if value in self.buffers:
            return self.b.load(self.buffers[value], self.offset(value, index))
        op = value.owner
        assert isinstance(op, Operation), f"no buffer for block argument {value}"
        return self.element_of(op, index)


@dataclass
class OpCx:
    """`ops.lowering.ElementCx` for one op of a kernel."""

    puller: Puller
    op: Operation

    @property
    def b(self) -> NestBuilder:
        return self.puller.b

    @property
    def attrs(self) -> Attrs:
        return attrs_of(self.op)

    @property
    def operand_types(self) -> Sequence[TensorType]:
        return [self.puller.type_of(v) for v in self.op.operands]

    @property
    def result_type(self) -> TensorType:
        return self.puller.type_of(self.op.results[0])

    def operand(self, i: int, index: Sequence[Index]) -> Value:
        return self.puller.element(self.op.operands[i], index)

    def buffer(self, i: int) -> Value:
        return self.puller.buffers[self.op.operands[i]]

    def run(self) -> Value:
        return self.puller.run()


def collapse(shape: Sequence[Dim], values: Sequence[Value], layouts: Layouts) -> list[list[int]]:
    """Axes of `shape` that can be walked as one, in groups.

    Each value (aligned to the right, dims equal to the shape's or 1) has all axes of a group or
    none, and where it lies they continue one another.
    """
    masks = [_presence(tensor_type(v).dims, shape) for v in values]
    breaks = {axis for v in values for axis in _breaks(v, len(shape), layouts)}
    groups: list[list[int]] = []
    last: list[bool] | None = None
    for axis, extent in enumerate(shape):
        column = [m[axis] for m in masks]
        alike = extent == 1 or last is None or column == last
        if groups and alike and axis not in breaks:
            groups[-1].append(axis)
        else:
            groups.append([axis])
        if extent != 1:
            last = column
    return groups


def _presence(dims: Sequence[Dim], shape: Sequence[Dim]) -> list[bool]:
    missing = len(shape) - len(dims)
    return [axis >= missing and dims[axis - missing] != 1 for axis in range(len(shape))]


def _breaks(value: Value, rank: int, layouts: Layouts) -> list[int]:
    """Axes of a shape of this rank that do not continue the one before in the value's buffer."""
    if layouts.is_dense(value):
        return []
    dims, strides = tensor_type(value).dims, layouts.strides(value)
    missing = rank - len(dims)
    return [
        missing + i
        for i in range(1, len(dims))
        if not contiguous(strides[i - 1], dims[i], strides[i])
    ]


@dataclass(frozen=True)
class Axes:
    """Axes of a shape of `rank` axes, walked in groups: what kernels see is one dim per group."""

    groups: Sequence[Sequence[int]]
    rank: int

    def type_of(self, kind: TensorType) -> TensorType:
        """A tensor's type as walked: the product of its dims in each group."""
        missing = self.rank - kind.rank
        dims: list[Dim] = []
        for group in self.groups:
            size: Dim = 1
            for axis in group:
                if axis >= missing:
                    size = size * kind.dims[axis - missing]
            dims.append(size)
        return kind.with_dims(dims)

    def strides_of(self, kind: TensorType, strides: Sequence[Dim]) -> list[Dim]:
        """The stride of each group: that of its last axis which the tensor has."""
        missing = self.rank - kind.rank
        found: list[Dim] = []
        for group in self.groups:
            own = [a - missing for a in group if a >= missing]
            long = [a for a in own if kind.dims[a] != 1] or own
            found.append(strides[long[-1]] if long else 0)
        return found
