"""Kernels whose loops run over the root's elements, and those whose lowering has its own loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, ceil_div, product
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import Index, NestBuilder
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.ir.types import BufferType, TensorType
from cuvil.ops.lowering import Scratch
from cuvil.plan.kernel import Draft, Kernel, free_of_views
from cuvil.plan.pull import Axes, Puller, collapse

CHUNK = 8192  # elements per task of a pointwise kernel
SHORT = 8  # elements of a last axis that are written out
Store = Callable[[Sequence[Index]], None]


def pull_kernel(draft: Draft, name: str) -> Kernel:
    """Loops over the root's elements; axes that every operand walks alike become one loop."""
    root, b = draft.group.root, draft.b
    result = root.results[0]
    shape = tensor_type(result).dims
    puller = draft.puller()
    if free_of_views(draft.group):
        groups = collapse(shape, [*draft.reads, result], draft.layouts)
        puller.axes = Axes(groups, len(shape))
    dims = puller.type_of(result).dims or (1,)

    def store(index: Sequence[Index]) -> None:
        at = index if puller.type_of(result).dims else ()
        value = puller.element_of(root, at)
        b.store(value, draft.writes[result], puller.offset(result, at))

    *outer, last = dims
    if root.name == "cuvil.transpose" and outer and isinstance(last, int) and 1 < last <= SHORT:
        return draft.finish(name, _walk(b, draft.task, outer, _for_each_last(last, store)))
    return draft.finish(name, _walk(b, draft.task, dims, store))


def _for_each_last(count: int, store: Store) -> Store:
    """The elements of a short last axis written out: where the axis before it lies together in the
    operand, a loop over that one reads whole vectors."""

    def each(index: Sequence[Index]) -> None:
        for i in range(count):
            store((*index, i))

    return each


def _walk(b: NestBuilder, task: Value, dims: Sequence[Dim], store: Store) -> Dim:
    """Blocks of rows, the last axis innermost; one long row is cut in chunks."""
    *outer, inner = dims
    rows = product(outer)
    if rows == 1:
        lo = b.mul(task, CHUNK)
        hi = b.index("min", b.add(lo, CHUNK), b.dim(inner))
        with b.loop(lo, hi, kind="parallel") as loop:
            store((*[0] * len(outer), loop.iv))
        return ceil_div(inner, CHUNK)
    block = max(1, CHUNK // max(1, inner)) if isinstance(inner, int) else 8
    if isinstance(rows, int):
        block = max(1, min(block, rows))
    lo = b.mul(task, block)
    hi = b.index("min", b.add(lo, block), b.dim(rows))
    with b.loop(lo, hi) as row:
        at = b.unflatten(row.iv, outer)
        with b.loop(0, b.dim(inner), kind="parallel") as loop:
            store((*at, loop.iv))
    return ceil_div(rows, block)


class ReadsBack(Exception):
    """The lowering needs its result as a plain buffer: nothing can be fused behind it."""


@dataclass
class Cx:
    """`ops.lowering.KernelCx` for the anchor of a group."""

    draft: Draft
    op: Operation
    puller: Puller
    task_dims: tuple[Dim, ...] = ()

    @property
    def b(self) -> NestBuilder:
        return self.draft.b

    @property
    def attrs(self) -> Attrs:
        return attrs_of(self.op)

    @property
    def operand_types(self) -> Sequence[TensorType]:
        return [tensor_type(v) for v in self.op.operands]

    @property
    def result_types(self) -> Sequence[TensorType]:
        return [tensor_type(v) for v in self.op.results]

    @property
    def result_type(self) -> TensorType:
        return self.result_types[0]

    def operand(self, i: int, index: Sequence[Index]) -> Value:
        return self.puller.element(self.op.operands[i], index)

    def buffer(self, i: int) -> Value:
        return self.puller.buffers[self.op.operands[i]]

    def run(self) -> Value:
        return self.draft.run()

    def tasks(self, dims: Sequence[Dim]) -> tuple[Index, ...]:
        self.task_dims = tuple(dims)
        return self.b.unflatten(self.draft.task, dims)

    def store(self, value: Value, index: Sequence[Index], result: int = 0) -> None:
        root = self.draft.group.root
        target = root.results[0] if root is not self.op else self.op.results[result]
        fresh = self.draft.puller()
        if root is not self.op:
            fresh.given[self.op.results[0]] = lambda _: value
            value = fresh.element_of(root, index)
        self.b.store(value, self.draft.writes[target], fresh.offset(target, index))

    def result_buffer(self, result: int = 0) -> Value:
        if self.draft.group.root is not self.op:
            raise ReadsBack
        value = self.op.results[result]
        assert self.draft.layouts.is_dense(value), f"{self.op.name} lacks the tag 'dense'"
        return self.draft.writes[value]

    def scratch(self, count: Dim, dtype: str) -> Scratch:
        if isinstance(count, int):
            size = BufferType.new(dtype).dtype.size
            return Scratch(self.b, self.b.scratch(count * size, dtype))
        buffer = self.draft.arena_room(dtype, count * product(self.task_dims))
        return Scratch(self.b, buffer, self.b.mul(self.draft.task, self.b.dim(count)))


def anchor_kernel(draft: Draft, name: str) -> Kernel:
    """The anchor's own loops; raises ReadsBack where a fused consumer is in its way."""
    anchor = draft.group.anchor
    assert anchor is not None
    cx = Cx(draft, anchor, draft.puller())
    lower = of(anchor).kernel
    assert lower is not None
    lower(cx)
    return draft.finish(name, product(cx.task_dims))


def concat_kernel(draft: Draft, name: str) -> Kernel:
    """Per index of the axes before the concatenated one: each operand's part, one after another;
    parts that lie in the result already are left out."""
    root, b = draft.group.root, draft.b
    axis, kind = attrs_of(root).axis, tensor_type(root.results[0])
    target = draft.writes[root.results[0]]
    outer = b.unflatten(draft.task, kind.dims[:axis])
    rest = product(kind.dims[axis + 1 :])
    start = b.mul(draft.task, b.dim(kind.dims[axis] * rest))
    puller = draft.puller()
    for operand in root.operands:
        own = tensor_type(operand).dims
        run = b.dim(own[axis] * rest)
        if operand in draft.layouts.parts(root.results[0]):
            pass
        elif operand in draft.reads and draft.layouts.is_dense(operand):
            source = b.mul(draft.task, run)
            with b.loop(0, run, kind="parallel") as loop:
                value = b.load(draft.reads[operand], b.add(source, loop.iv))
                b.store(value, target, b.add(start, loop.iv))
        else:
            _copy_pulled(b, puller, operand, outer, axis, target, start)
        start = b.add(start, run)
    return draft.finish(name, product(kind.dims[:axis]))


def _copy_pulled(
    b: NestBuilder,
    puller: Puller,
    operand: Value,
    outer: Sequence[Index],
    axis: int,
    target: Value,
    start: Index,
) -> None:
    own = tensor_type(operand).dims
    inner = own[axis:]

    def walk(index: tuple[Index, ...]) -> None:
        at = len(index)
        last = at == len(inner) - 1
        with b.loop(0, b.dim(inner[at]), kind="parallel" if last else "") as loop:
            here = (*index, loop.iv)
            if not last:
                walk(here)
                return
            value = puller.element(operand, (*outer, *here))
            b.store(value, target, b.add(start, b.flatten(here, inner)))

    walk(())
