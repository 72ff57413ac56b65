"""One op, not fused with anything, as a kernel: the plainest use of the lowering protocol."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, product
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import Index, NestBuilder, new_kernel
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.ir.types import BufferType, DimsAttr, TensorType
from cuvil.ops.lowering import Scratch

RUN: tuple[str, Dim] = ("u8", 0)


class OpCx:
    """KernelCx (and ElementCx) of a single op whose operands and results are buffers.

    The kernel's buffers are the operands, the results, then one buffer for each scratch of a
    symbolic size, which holds a part for every task (`arena`: its dtype and elements), and one
    for the run where strings are made (`RUN`).
    """

    def __init__(self, op: Operation, name: str) -> None:
        self.attrs: Attrs = attrs_of(op)
        self.operand_types: Sequence[TensorType] = [tensor_type(v) for v in op.operands]
        self.result_types: Sequence[TensorType] = [tensor_type(v) for v in op.results]
        kinds = [t.dtype.name for t in (*self.operand_types, *self.result_types)]
        self.kernel, block = new_kernel(name, kinds)
        self.b = NestBuilder(block)
        self.task: Value = block.args[-1]
        self.arena: list[tuple[str, Dim]] = []
        self._tasks: Dim = 1

    @property
    def result_type(self) -> TensorType:
        return self.result_types[0]

    def _buffer(self, i: int) -> Value:
        buffer: Value = self.kernel.body.block.args[i]
        return buffer

    def operand(self, i: int, index: Sequence[Index]) -> Value:
        return self.b.load(self._buffer(i), self.b.flatten(index, self.operand_types[i].dims))

    def buffer(self, i: int) -> Value:
        return self._buffer(i)

    def run(self) -> Value:
        self.arena.append(RUN)
        block = self.kernel.body.block
        return block.insert_arg(BufferType.new("u8"), len(block.args) - 1)

    def tasks(self, dims: Sequence[Dim]) -> tuple[Index, ...]:
        self._tasks = product(dims)
        self.kernel.properties["tasks"] = DimsAttr.new(tuple(dims))
        return self.b.unflatten(self.task, dims)

    def store(self, value: Value, index: Sequence[Index], result: int = 0) -> None:
        offset = self.b.flatten(index, self.result_types[result].dims)
        self.b.store(value, self.result_buffer(result), offset)

    def result_buffer(self, result: int = 0) -> Value:
        return self._buffer(len(self.operand_types) + result)

    def scratch(self, count: Dim, dtype: str) -> Scratch:
        if isinstance(count, int):
            size = TensorType.of((), dtype).dtype.size
            return Scratch(self.b, self.b.scratch(count * size, dtype))
        self.arena.append((dtype, self._tasks * count))
        block = self.kernel.body.block
        buffer = block.insert_arg(BufferType.new(dtype), len(block.args) - 1)
        return Scratch(self.b, buffer, self.b.mul(self.task, self.b.dim(count)))


def lower_op(op: Operation, name: str = "kernel", element: bool = False) -> OpCx:
    """The kernel of one op, in `.kernel`.

    The record's `kernel` form is taken where there is one, unless `element` asks for the other.
    ValueError for an op with neither (control, constants).
    """
    record, cx = of(op), OpCx(op, name)
    if record.kernel is not None and not (element and record.element is not None):
        record.kernel(cx)
    elif record.element is not None:
        _element_kernel(cx, record.element)
    else:
        raise ValueError(f"{op.name} has no kernel of its own")
    return cx


def _element_kernel(cx: OpCx, element: object) -> None:
    """A task for every row of the result, a parallel loop along it."""
    assert callable(element)
    dims = cx.result_type.dims
    at = cx.tasks(dims[:-1])
    if not dims:
        cx.store(element(cx, ()), ())
        return
    with cx.b.loop(0, cx.b.dim(dims[-1]), kind="parallel") as loop:
        index = (*at, loop.iv)
        cx.store(element(cx, index), index)
