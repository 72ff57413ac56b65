"""In which order a block's kernels run: what is needed together is computed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import of
from cuvil.plan.groups import Group, is_free
from cuvil.plan.in_place import candidates
from cuvil.plan.kernel import reads_of
from cuvil.plan.layout import Layouts, storage
from cuvil.plan.memory import Memory
from cuvil.plan.order import Task, best_order

__all__ = ["scheduled"]


def scheduled(
    block: Block, groups: Sequence[Group], layouts: Layouts, memory: Memory, pool: Pool
) -> list[Group]:
    """The groups in the order that needs the least memory, as far as sizes tell before there are
    kernels; in their own order where none needs less.

    Loops, branches, what devices compute and extents that a run finds stay where they are, and
    nothing moves past them.
    """
    tasks = _Tasks(block, layouts, memory, pool)
    for number, group in enumerate(groups):
        tasks.homes.update(dict.fromkeys(group.members, number))
    found = [tasks.task(number, group) for number, group in enumerate(groups)]
    assert block.last_op is not None
    kept = tasks.buffers_of(block.last_op.operands)
    order = best_order(found, list(tasks.sizes.values()), kept)
    return [groups[number] for number in order]


def _stays(group: Group) -> bool:
    """Whether nothing may move past a group."""
    return group.is_control or group.away or not of(group.root).pure


@dataclass
class _Tasks:
    """homes: op -> the number of its group. sizes: of the buffers so far, in bytes."""

    block: Block
    layouts: Layouts
    memory: Memory
    pool: Pool
    homes: dict[Operation, int] = field(default_factory=dict)
    sizes: dict[Value, int] = field(default_factory=dict)
    numbers: dict[Value, int] = field(default_factory=dict)
    fence: int = 0  # the last group that stays, as a set of bits

    def task(self, number: int, group: Group) -> Task:
        """A group as a task; groups are asked for in order."""
        if _stays(group):
            self.fence = 1 << number
            read = [v for op in group.members for v in _operands(op)]
            return Task(self.fence - 1, self.buffers_of([*read, *group.root.results]))
        if group.is_alias:
            producers = self._producers(number, group, group.root.operands)
            return Task(producers, self.buffers_of(group.root.results))
        reads = reads_of(group, self.pool, self.layouts)
        over = self.buffers_of(candidates(group, reads, self.layouts, self.memory))
        touched = self.buffers_of([*reads, *group.root.results])
        return Task(self._producers(number, group, reads), touched, over)

    def _producers(self, number: int, group: Group, reads: Sequence[Value]) -> int:
        """reads: what has to be stored by then, free ops' results included."""
        found = self.fence
        for owner in (value.owner for value in reads):
            if isinstance(owner, Operation) and owner in self.homes:
                found |= 1 << self.homes[owner]
        for value in (v for op in group.members for v in op.operands):
            owner = value.owner
            if isinstance(owner, Operation) and owner in self.homes and not is_free(owner):
                found |= 1 << self.homes[owner]
        return found & ((1 << number) - 1)

    def buffers_of(self, values: Sequence[Value]) -> list[int]:
        """The buffers of the block's own in which values lie; not those of its results."""
        whole = dict.fromkeys(storage(value, self.layouts) for value in values)
        return [self._number(v) for v in whole if self._is_own(v)]

    def _is_own(self, value: Value) -> bool:
        return value.owner in self.homes and value not in self.memory.wanted

    def _number(self, value: Value) -> int:
        if value not in self.sizes:
            self.sizes[value] = self.memory.expected(value)
            self.numbers[value] = len(self.numbers)
        return self.numbers[value]


def _operands(op: Operation) -> Iterator[Value]:
    """What an op reads, nested ops included."""
    yield from op.operands
    for region in op.regions:
        for inner in region.block.ops:
            yield from _operands(inner)
