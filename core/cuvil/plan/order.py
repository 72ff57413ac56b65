"""Orders of tasks that share memory: a pure function of who needs what, by beam search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

WIDTH = 16  # orders that are followed at a time
MOST_LOOKS = 20_000  # at a next task, in all: more tasks are followed more narrowly

__all__ = ["Cost", "Task", "best_order", "cost_of"]


@dataclass(frozen=True)
class Task:
    """after: the tasks that must have run, as a set of bits. touched: the buffers that it reads or
    writes. over: those of them over which it may write its result, if nobody needs them again."""

    after: int = 0
    touched: Sequence[int] = ()
    over: Sequence[int] = ()


class Cost(NamedTuple):
    """peak: the most bytes at a time. kept: bytes, over all tasks, that wait for a later one."""

    peak: int
    kept: int


@dataclass
class _Buffers:
    """sizes: bytes. users: the tasks that touch each, as a set of bits."""

    tasks: Sequence[Task]
    sizes: Sequence[int]
    users: list[int] = field(default_factory=list)

    def step(self, done: int, held: int, task: int) -> tuple[int, int]:
        """Bytes while a task runs, and behind it. held: bytes before; done: the tasks before."""
        begun = ended = spared = 0
        after = done | 1 << task
        for buffer in self.tasks[task].touched:
            size, users = self.sizes[buffer], self.users[buffer]
            begun += 0 if users & done else size
            if not users & ~after:
                ended += size
                if buffer in self.tasks[task].over:
                    spared = max(spared, size)
        return held + begun - spared, held + begun - ended


def _buffers(tasks: Sequence[Task], sizes: Sequence[int], kept: Sequence[int]) -> _Buffers:
    """kept: the buffers that are needed behind the last task."""
    found = _Buffers(tasks, sizes, [0] * len(sizes))
    for number, task in enumerate(tasks):
        for buffer in task.touched:
            found.users[buffer] |= 1 << number
    for buffer in kept:
        found.users[buffer] |= 1 << len(tasks)
    return found


def cost_of(
    order: Sequence[int], tasks: Sequence[Task], sizes: Sequence[int], kept: Sequence[int] = ()
) -> Cost:
    """What an order of tasks needs. kept: the buffers that are needed behind the last task."""
    buffers, done = _buffers(tasks, sizes, kept), 0
    held = peak = waiting = 0
    for task in order:
        most, held = buffers.step(done, held, task)
        peak, waiting, done = max(peak, most), waiting + held, done | 1 << task
    return Cost(peak, waiting)


class _Begun(NamedTuple):
    """The begin of an order. Compared by cost, then by how early its tasks come in the file."""

    peak: int
    kept: int
    order: tuple[int, ...]
    held: int
    ready: tuple[int, ...]


def best_order(
    tasks: Sequence[Task], sizes: Sequence[int], kept: Sequence[int] = ()
) -> tuple[int, ...]:
    """The order that needs the least memory, of those looked at; the given one where none needs
    less, or as much and has fewer bytes wait. Tasks come after all of their `after`."""
    if not tasks:
        return ()
    given = tuple(range(len(tasks)))
    usual = cost_of(given, tasks, sizes, kept)
    buffers, following = _buffers(tasks, sizes, kept), _following(tasks)
    width = max(1, min(WIDTH, MOST_LOOKS // (4 * len(tasks))))
    begun = {0: _Begun(0, 0, (), 0, tuple(i for i, t in enumerate(tasks) if not t.after))}
    for _ in tasks:
        more: dict[int, _Begun] = {}
        for done, start in begun.items():
            for now, longer in _longer(done, start, buffers, following):
                if longer.peak <= usual.peak and (now not in more or longer < more[now]):
                    more[now] = longer
        best = sorted(more, key=more.__getitem__)[:width]
        begun = {done: more[done] for done in best}
    found = next(iter(begun.values()), None)
    return found.order if found and (found.peak, found.kept) < usual else given


def _longer(
    done: int, start: _Begun, buffers: _Buffers, following: Sequence[Sequence[int]]
) -> Iterator[tuple[int, _Begun]]:
    """The tasks that have run, and the order, for each task that may come next."""
    for task in start.ready:
        now = done | 1 << task
        most, held = buffers.step(done, start.held, task)
        freed = [f for f in following[task] if not buffers.tasks[f].after & ~now]
        ready = (*(r for r in start.ready if r != task), *freed)
        peak = max(start.peak, most)
        yield now, _Begun(peak, start.kept + held, (*start.order, task), held, ready)


def _following(tasks: Sequence[Task]) -> list[list[int]]:
    """For each task those that wait for it."""
    found: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        waits = task.after
        while waits:
            first = waits & -waits
            found[first.bit_length() - 1].append(number)
            waits ^= first
    return found
