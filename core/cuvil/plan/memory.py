"""Buffers while a program is being planned: who lies where, from which step to which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuvil.ir.dims import Dim, evaluate, symbols
from cuvil.ir.dims_upper import Top, upper_bound
from cuvil.ir.names import Value
from cuvil.ir.record import tensor_type
from cuvil.plan.arena import ALIGN, ArenaPlan, Lifetime, plan_arena
from cuvil.plan.conditions import Ranges
from cuvil.plan.layout import Layouts
from cuvil.plan.produced import refuse_unbounded
from cuvil.plan.steps import HOST, Arena, ArenaBuffer, Grow, Ref, View, base_of

HINT = 64  # extent to plan with for a symbol that says nothing of its range


def nbytes(value: Value) -> Dim:
    """The size of a tensor in bytes."""
    kind = tensor_type(value)
    return kind.size * kind.dtype.size


@dataclass
class Memory:
    """Places of values and lifetimes of arena buffers; `step` is the clock.

    places: in host memory. away: (space, value) -> where a copy lies in a device's memory. tops,
    ranges: what is known of symbols. pending: buffers to be made large enough before the next step.
    dynamic: nothing is planned: the run asks for the memory of every buffer when it gets there.
    """

    layouts: Layouts = field(default_factory=Layouts)
    tops: Mapping[str, Top] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    pending: list[Grow] = field(default_factory=list)
    places: dict[Value, Ref] = field(default_factory=dict)
    away: dict[tuple[str, Value], Ref] = field(default_factory=dict)
    wanted: dict[Value, Ref] = field(default_factory=dict)
    buffers: list[ArenaBuffer] = field(default_factory=list)
    step: int = 0
    dynamic: bool = False
    loops: list[int] = field(default_factory=list)  # clock at the start of each open loop

    def tick(self) -> None:
        self.step += 1

    def new(self, size: Dim, space: str = HOST, grows: bool = False) -> Arena:
        """A fresh buffer that begins to live now: in the arena by its upper bound, or growing."""
        grows = grows or (self.dynamic and space == HOST)
        most = None if grows else upper_bound(size, self.tops, self.ranges)
        if most is None and space != HOST:
            refuse_unbounded(size, space)
        buffer = ArenaBuffer(0 if most is None else most, self.step, self.step, space)
        buffer.grows = most is None
        self.buffers.append(buffer)
        return self.grown(Arena(len(self.buffers) - 1), size)

    def grows(self, ref: Ref) -> bool:
        """Whether it is a whole buffer without upper bound."""
        return isinstance(ref, Arena) and self.buffers[ref.number].grows

    def grown(self, ref: Arena, size: Dim, keep: bool = False) -> Arena:
        """The buffer, which if it grows will have so many bytes at the next step."""
        if self.grows(ref):
            self.pending.append(Grow(ref, size, keep))
        return ref

    def touch(self, ref: Ref) -> Ref:
        """Notes a use now; inside a loop, what is older than the loop lives to its end."""
        base = base_of(ref)
        if isinstance(base, Arena):
            buffer = self.buffers[base.number]
            buffer.last = max(buffer.last, self.step)
            for start in self.loops:
                if buffer.first < start:
                    buffer.pinned.append(start)
        return ref

    def close_loop(self, start: int) -> None:
        """Ends the loop that began at clock `start`."""
        self.loops.remove(start)
        for buffer in self.buffers:
            if start in buffer.pinned:
                buffer.last = max(buffer.last, self.step)

    def reach(self, ref: Ref, size: Dim) -> None:
        """Grows what is about to be written: a whole buffer, or up to the end of a part of it."""
        if isinstance(ref, Arena):
            self.grown(ref, size)
        elif isinstance(ref, View) and isinstance(ref.base, Arena):
            self.grown(ref.base, ref.offset + size, keep=True)

    def destination(self, value: Value) -> Ref:
        """Where a value that is about to be computed goes: where it is wanted, or a new buffer."""
        if value not in self.places:
            wanted = self.wanted.get(value)
            self.places[value] = wanted or self.new(self.layouts.nbytes(value))
            if wanted is not None:
                self.reach(wanted, nbytes(value))
        return self.touch(self.places[value])

    def home(self, value: Value) -> Ref:
        """As `destination`, for what several places write: each grows it by itself."""
        before = len(self.pending)
        ref = self.destination(value)
        del self.pending[before:]
        return ref

    def expected(self, value: Value) -> int:
        """About the bytes that a value takes of the arena."""
        most = upper_bound(self.layouts.nbytes(value), self.tops, self.ranges)
        return 0 if most is None else _hint(most, hints_of(self.ranges))

    def plan(self, space: str = HOST, align: int = ALIGN) -> ArenaPlan:
        """Offsets of the arena buffers of a space, in the order in which they were made."""
        hints = hints_of(self.ranges)
        lives = [
            Lifetime(b.first, b.last, b.bytes, _hint(b.bytes, hints))
            for b in self.buffers
            if b.space == space and not b.grows
        ]
        return plan_arena(lives, align)


def hints_of(ranges: Ranges) -> dict[str, int]:
    """The extents of symbols to plan with."""
    return {
        name: max((low if most is None else min(most, 512)) or HINT, 16)
        for name, (low, most) in ranges.items()
    }


def _hint(size: Dim, hints: Mapping[str, int]) -> int:
    return evaluate(size, {name: hints.get(name, HINT) for name in symbols(size)})
