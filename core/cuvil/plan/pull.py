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

Reshape = Callable[[TensorType], TensorType]
Given = Callable[[Sequence[Index]], Value]


def same(kind: TensorType) -> TensorType:
    return kind


def inline_constant(value: Value, pool: Pool) -> float | int | bool | None:
    """The number of a one-element constant, which stands in the kernel itself."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "cuvil.constant":
        return None
    if tensor_type(value).size != 1:
        return None
    return constant_array(owner, pool).reshape(()).item()  # type: ignore[no-any-return]


@dataclass
class Puller:
    """Computes elements of values in one kernel.

    buffers: values that lie in memory. given: values that somebody else computes (an anchor's
    accumulator). reshape: how this kernel sees tensor types (see `plan.collapse`).
    """

    b: NestBuilder
    pool: Pool
    buffers: Mapping[Value, Value]
    given: dict[Value, Given] = field(default_factory=dict)
    reshape: Reshape = same
    _memo: dict[tuple[int, Value, tuple[Index, ...]], tuple[Block, Value]] = field(
        default_factory=dict
    )

    def type_of(self, value: Value) -> TensorType:
        return self.reshape(tensor_type(value))

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
            offset = self.b.flatten(index, self.type_of(value).dims)
            return self.b.load(self.buffers[value], offset)
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


def collapse(kinds: Sequence[TensorType], shape: Sequence[Dim]) -> list[list[int]]:
    """Axes of `shape` that can be walked as one: each kind (aligned to the right, dims equal to
    the shape's or 1) either has all axes of a group or none. Groups are lists of axes."""
    masks = [_presence(kind.dims, shape) for kind in kinds]
    groups: list[list[int]] = []
    last: list[bool] | None = None
    for axis, extent in enumerate(shape):
        column = [m[axis] for m in masks]
        if groups and (extent == 1 or last is None or column == last):
            groups[-1].append(axis)
        else:
            groups.append([axis])
        if extent != 1:
            last = column
    return groups


def _presence(dims: Sequence[Dim], shape: Sequence[Dim]) -> list[bool]:
    missing = len(shape) - len(dims)
    return [axis >= missing and dims[axis - missing] != 1 for axis in range(len(shape))]


def grouped(groups: Sequence[Sequence[int]], rank: int) -> Reshape:
    """The type a kernel sees when axes are walked in groups: one dim per group, size-1 or full."""

    def reshape(kind: TensorType) -> TensorType:
        missing = rank - kind.rank
        dims: list[Dim] = []
        for group in groups:
            size: Dim = 1
            for axis in group:
                if axis >= missing:
                    size = size * kind.dims[axis - missing]
            dims.append(size)
        return kind.with_dims(dims)

    return reshape
