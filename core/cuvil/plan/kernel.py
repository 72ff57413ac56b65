"""From a group to a kernel: what all ways of building one share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cuvil.ir import nest
from cuvil.ir.dims import Dim
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.nest_build import INDEX, NestBuilder, kernel_op
from cuvil.ir.pool import Constant, Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import BufferType
from cuvil.plan.groups import Group, inlined, is_free, is_opaque
from cuvil.plan.layout import Layouts
from cuvil.plan.pull import Puller, inline_constant


class Packed(Protocol):
    """Another form in which a kernel wants an operand: a constant's is made with the weights, that
    of any other tensor by a kernel of its own."""

    @property
    def size(self) -> Dim: ...
    def constant(self, source: Constant, pool: Pool) -> Constant: ...
    def kernel(self, name: str) -> tuple[nest.KernelOp, Dim]: ...


@dataclass
class Kernel:
    """A kernel and what its launch needs.

    reads: tensors whose buffers come first; twins: positions of reads whose buffers then come once
    more; writes: results whose buffers come next; room: bytes of arena buffers that come last
    (scratch of run-time size), None for the run itself. packed: reads that the kernel wants in
    another form (see `plan.packing`), by position. tasks: 0 where the backend decides.
    """

    op: nest.KernelOp
    reads: list[Value]
    writes: list[Value]
    tasks: Dim
    room: list[tuple[str, Dim | None]] = field(default_factory=list)
    packed: dict[int, Packed] = field(default_factory=dict)
    twins: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.op.sym_name.data


@dataclass
class Draft:
    """A kernel under construction: a block whose arguments are buffers, then the task.

    over: the operand in whose buffer the result is written.
    """

    group: Group
    pool: Pool
    layouts: Layouts
    over: Value | None = None
    block: Block = field(default_factory=Block)
    reads: dict[Value, Value] = field(default_factory=dict)
    writes: dict[Value, Value] = field(default_factory=dict)
    room: list[tuple[str, Dim | None]] = field(default_factory=list)
    twins: list[int] = field(default_factory=list)

    run_buffer: Value | None = None

    def __post_init__(self) -> None:
        for value in reads_of(self.group, self.pool, self.layouts):
            self.reads[value] = self._buffer(tensor_type(value).dtype.name)
        for value in self.group.root.results:
            if self.over is not None:
                self.writes[value] = self.reads[self.over]
            else:
                self.writes[value] = self._buffer(tensor_type(value).dtype.name)
        self.task = self.block.insert_arg(INDEX, len(self.block.args))
        self.b = NestBuilder(self.block)

    def _buffer(self, dtype: str) -> Value:
        return self.block.insert_arg(BufferType.new(dtype), len(self.block.args))

    def twin(self, value: Value) -> tuple[int, Value]:
        """One more operand for a tensor that is read already: its position and its buffer."""
        at = len(self.reads) + len(self.twins)
        self.twins.append(list(self.reads).index(value))
        kind = BufferType.new(tensor_type(value).dtype.name)
        return at, self.block.insert_arg(kind, at)

    def puller(self) -> Puller:
        return Puller(self.b, self.pool, self.reads, self.layouts, self.run)

    def arena_room(self, dtype: str, count: Dim) -> Value:
        """A buffer operand for scratch of run-time size; count: elements in all."""
        size = BufferType.new(dtype).dtype.size
        arg = self.block.insert_arg(BufferType.new(dtype), len(self.block.args) - 1)
        self.room.append((dtype, count * size))
        return arg

    def run(self) -> Value:
        """The buffer operand that stands for the run."""
        if self.run_buffer is None:
            kind = BufferType.new("u8")
            self.run_buffer = self.block.insert_arg(kind, len(self.block.args) - 1)
            self.room.append(("u8", None))
        return self.run_buffer

    def finish(self, name: str, tasks: Dim, packed: dict[int, Packed] | None = None) -> Kernel:
        op = kernel_op(name, tasks, self.block)
        reads, writes = list(self.reads), list(self.writes)
        return Kernel(op, reads, writes, tasks, self.room, packed or {}, self.twins)


def inputs_of(group: Group, pool: Pool) -> list[Value]:
    """The stored tensors that a group reads, each once, in order of first use."""
    whole = group.template or is_opaque(group.root)
    stored = group.anchor.operands if whole and group.anchor is not None else ()
    return _reads(group, pool, stored)


def reads_of(group: Group, pool: Pool, layouts: Layouts) -> list[Value]:
    """What the group's kernel reads: its inputs but for those that lie in its result already."""
    inside = layouts.parts(group.root.results[0])
    return [v for v in inputs_of(group, pool) if v not in inside]


def epilogue_inputs(group: Group, pool: Pool) -> list[Value]:
    """The stored tensors that the ops behind a group's anchor read."""
    return _reads(group, pool, (), group.anchor) if group.root is not group.anchor else []


def _reads(
    group: Group, pool: Pool, stored: Sequence[Value], stop: Operation | None = None
) -> list[Value]:
    """stored: values that are read where others are inlined. stop: an op not to look behind."""
    members = set(group.members)
    seen: dict[Value, None] = {}
    done: set[Value] = set()

    def visit(value: Value) -> None:
        owner = value.owner
        if value in done or owner is stop:
            return
        done.add(value)
        asked = value in stored and owner not in members
        if not asked and inline_constant(value, pool) is not None:
            return
        computed = isinstance(owner, Operation) and (owner in members or is_free(owner))
        if computed and owner is not group.root and not asked:
            for operand in owner.operands:  # type: ignore[union-attr]
                visit(operand)
        else:
            seen[value] = None

    for operand in group.root.operands:
        visit(operand)
    return list(seen)


def signature(group: Group, pool: Pool, layouts: Layouts) -> tuple[object, ...]:
    """Equal for groups that give the same kernel up to its name."""
    numbers: dict[Value, object] = {}
    inside = layouts.parts(group.root.results[0])
    for i, value in enumerate(inputs_of(group, pool)):
        numbers[value] = ("in", i, value.type, layouts.strides(value), value in inside)
    rows: list[object] = [
        group.template, group.anchor and group.anchor.name, layouts.strides(group.root.results[0]),
    ]  # fmt: skip

    def operand(value: Value) -> object:
        if value not in numbers:
            number = inline_constant(value, pool)
            if number is not None:
                return ("number", repr(number), value.type)
            add(value.owner)  # type: ignore[arg-type]
        return numbers[value]

    def add(op: Operation) -> None:
        row = (
            op.name,
            tuple(sorted(op.properties.items(), key=lambda item: item[0])),
            tuple(operand(v) for v in op.operands),
            tuple(r.type for r in op.results),
        )
        for i, result in enumerate(op.results):
            numbers[result] = ("op", len(rows), i)
        rows.append(row)

    add(group.root)
    return tuple(rows)


def free_of_views(group: Group) -> bool:
    """Whether axes may be walked together: nothing looks at a particular axis."""
    return all(
        "pointwise" in op.record.tags or op.name == "cuvil.broadcast"  # type: ignore[attr-defined]
        for op in inlined(group)
    )


@dataclass
class Kernels:
    """What has been built so far, by what it is made of: programs of one model share it."""

    by_signature: dict[object, Kernel] = field(default_factory=dict)
    packers: dict[Packed, tuple[str, Dim]] = field(default_factory=dict)
    ops: dict[str, nest.KernelOp] = field(default_factory=dict)

    def copy(self) -> Kernels:
        """The same so far, to be added to apart."""
        return Kernels(dict(self.by_signature), dict(self.packers), dict(self.ops))
