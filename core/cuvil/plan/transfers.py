"""Copies between the host's memory and devices': made when a value is first asked for on the other
side, waited for before the host looks at them or uses their memory again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cuvil.ir.build import location_name
from cuvil.ir.names import Operation, Value
from cuvil.plan.memory import Memory, nbytes
from cuvil.plan.steps import Copy, Ref, Signal, Step, Wait, base_of


@dataclass
class _Flight:
    """Host memory that a transfer still reads (or, arrives: writes). ticket 0: not signalled."""

    queue: str
    ref: Ref
    arrives: bool
    ticket: int = 0


@dataclass
class Transfers:
    """Appends transfers to the steps of a program as it is planned; `steps` is where they go."""

    memory: Memory
    steps: list[Step] = field(default_factory=list)
    _flights: list[_Flight] = field(default_factory=list)
    _tickets: int = 0
    _moved: list[tuple[object, object]] = field(default_factory=list)

    @contextmanager
    def inside(self, steps: list[Step]) -> Iterator[None]:
        """Works on the steps of a nested block; what it copies is known inside that block only."""
        outer, self.steps, start = self.steps, steps, len(self._moved)
        yield
        self.settle_all()
        for places, key in self._moved[start:]:
            places.pop(key, None)  # type: ignore[attr-defined]
        del self._moved[start:]
        self.steps = outer

    def found(self, value: Value, ref: Ref) -> None:
        """Notes where a value lies in host memory, as far as the current block knows."""
        self.memory.places[value] = ref
        self._moved.append((self.memory.places, value))

    def download(self, value: Value) -> None:
        """Brings a device's value to the place in host memory where it is wanted."""
        space, source = next((s, r) for (s, v), r in self.memory.away.items() if v is value)
        self.memory.touch(source)
        target = self.memory.destination(value)
        self._moved.append((self.memory.places, value))
        self._copy(space, value, source, target, target, True)

    def upload(self, value: Value, source: Ref, space: str) -> Ref:
        """Brings a value of the host to a device."""
        target = self.memory.new(nbytes(value), space)
        self.memory.away[space, value] = target
        self._moved.append((self.memory.away, (space, value)))
        self._copy(space, value, source, target, source, False)
        return target

    def _copy(
        self, queue: str, value: Value, source: Ref, target: Ref, ref: Ref, arrives: bool
    ) -> None:
        owner = value.owner
        nodes = location_name(owner) if isinstance(owner, Operation) else "input"
        site = f"{'download' if arrives else 'upload'}\t{nodes}"
        self.steps.append(Copy(nbytes(value), source, target, queue, site))
        self._flights.append(_Flight(queue, ref, arrives))

    def signal(self, queue: str) -> None:
        """Numbers the transfers so far, before other work follows them on the queue."""
        fresh = [f for f in self._flights if f.queue == queue and not f.ticket]
        if fresh:
            self._tickets += 1
            self.steps.append(Signal(queue, self._tickets))
            for flight in fresh:
                flight.ticket = self._tickets

    def settle(self, ref: Ref) -> None:
        """Waits for what arrives at `ref`, which the host is about to read."""
        base = base_of(ref)
        for flight in self._flights:
            if flight.arrives and base_of(flight.ref) == base:
                self._wait(flight)
                return

    def leaves(self, ref: Ref) -> bool:
        """Whether a transfer may still read `ref`, so that nothing is to be written there."""
        base = base_of(ref)
        return any(not f.arrives and base_of(f.ref) == base for f in self._flights)

    def settle_all(self) -> None:
        """Waits for all transfers."""
        while self._flights:
            self._wait(self._flights[-1])

    def _wait(self, until: _Flight) -> None:
        self.signal(until.queue)
        self.steps.append(Wait(until.queue, until.ticket))
        done = [f for f in self._flights if f.queue == until.queue and f.ticket <= until.ticket]
        for flight in done:
            self.memory.touch(flight.ref)
            self._flights.remove(flight)
