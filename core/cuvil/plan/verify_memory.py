"""Where a program's buffers lie, followed step by step for sample values of its symbols: inside the
arena, nobody reads what somebody else has written over, and the host waits for devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cuvil.errors import CompileError
from cuvil.ir import host
from cuvil.ir.dims import Dim, evaluate, symbols
from cuvil.ir.names import Block, Operation, Value
from cuvil.plan.arena import ALIGN
from cuvil.plan.plan import DevicePlan, Plan
from cuvil.plan.steps import HOST
from cuvil.plan.verify_nest import loads, stores
from cuvil.plan.verify_reach import reach

SAMPLES = 6
LONGEST = 1 << 10  # iterations beyond this one are not looked at
STEPS = (0, 1, 2, 3, 7, 12, 33, 70)


def verify_memory(plan: Plan) -> None:
    """Raises CompileError naming the step where a buffer lies outside the arena or its source, is
    not aligned, is too short for a template's strides, or is read while it does not hold what was
    written to it, or where the host uses memory that a device may still use."""
    for env in sample_values(plan):
        try:
            _Walk(plan, env).program()
        except _Refused:
            continue  # no caller gets past the check that does not hold
        except _Illegal as error:
            values = ", ".join(f"{n} = {v}" for n, v in env.items())
            raise CompileError(
                f"plan {plan.name}{f' at {values}' if env else ''}: {error}"
            ) from error


def sample_values(plan: Plan) -> Iterator[dict[str, int]]:
    """Values for the inputs' symbols, within their bounds."""
    env: dict[str, int] = {}
    for sample in range(SAMPLES if plan.symbols else 1):
        env = {}
        for i, (name, (low, high)) in enumerate(zip(plan.symbols, plan.bounds, strict=True)):
            value = low + STEPS[(sample + i * (sample % 3)) % len(STEPS)]
            env[name] = value if high is None else min(value, high)
        yield env
    for special in plan.special:
        yield {**env, **special}


class _Illegal(Exception):
    """What is wrong, in words."""


class _Refused(Exception):
    """A check of the program does not hold for these values."""


@dataclass(frozen=True)
class _Place:
    """A part of a buffer. owner: what tells the whole buffer from others; start, end: where the
    whole lies in its space ("" for what no other buffer shares); at, size: the part's bytes;
    part: where it starts, as expressions, for what is not all of it."""

    owner: object
    space: str
    start: int
    end: int
    at: int
    size: int
    part: tuple[Dim, ...] = ()

    def clashes(self, other: _Place) -> bool:
        apart = self.end <= other.start or other.end <= self.start
        return self.space == other.space != "" and self.owner != other.owner and not apart

    def shares(self, other: _Place) -> bool:
        """Whether both have bytes of one buffer. Parts with a start of their own may be columns of
        it side by side: they do not count, nor do starts that are equal for some extents only,
        where one of the parts is empty."""
        alike = not self.part or not other.part or self.part == other.part
        return self.owner == other.owner and alike and min(self.size, other.size) > 0


@dataclass(frozen=True)
class _Flight:
    """Host memory that a device's queue reads or (arrives) writes, as the `number`-th thing."""

    queue: str
    number: int
    place: _Place
    arrives: bool


@dataclass
class _Body:
    """One iteration of a loop: the buffers that it has written so far, and those that it has read
    before, which hold what was there at its beginning."""

    written: set[object] = field(default_factory=set)
    found: set[object] = field(default_factory=set)


@dataclass
class _Walk:
    """valid: the buffers that hold what was last written to them. queued: how much work was put on
    all queues so far; tickets: up to which of it each stands for. bodies: of the open loops."""

    plan: Plan
    env: dict[str, int]
    places: dict[Value, _Place] = field(default_factory=dict)
    valid: dict[object, _Place] = field(default_factory=dict)
    flights: list[_Flight] = field(default_factory=list)
    tickets: dict[int, int] = field(default_factory=dict)
    queued: int = 0
    grown: dict[int, int] = field(default_factory=dict)
    bodies: list[_Body] = field(default_factory=list)

    def program(self) -> None:
        self.block(self.plan.program.body.block)
        if self.flights:
            raise _Illegal(f"the program ends before {self.flights[0].queue} is done")
        for i, port in enumerate(self.plan.outputs, len(self.plan.inputs)):
            known = self.env.keys() >= set(symbols(port.type.size))
            filled = f"argument {i}" in self.valid or (known and not self.size_of(port.type.size))
            if not filled:
                raise _Illegal(f"output '{port.name}' is not written")

    def block(self, block: Block) -> None:
        for op in block.ops:
            _STEPS[type(op)](self, op)

    def dim(self, op: Operation, name: str) -> int:
        return evaluate(op.properties[name].data[0], self.env)  # type: ignore[attr-defined]

    def size_of(self, size: Dim) -> int:
        """A number of elements, or its upper bound while the run has not found it; -1: none."""
        if self.env.keys() >= set(symbols(size)):
            return evaluate(size, self.env)
        most = self.plan.most(size)
        return -1 if most is None else evaluate(most, self.env)

    def memory(self, space: str) -> Plan | DevicePlan:
        return self.plan if space == HOST else next(d for d in self.plan.devices if d.name == space)

    def own(self, op: Operation, owner: object, space: str, start: int, size: int) -> None:
        """A whole buffer."""
        place = _Place(owner, space, start, start + size, start, size)
        self.places[op.results[0]] = place

    def read(self, value: Value, who: str, queue: str = HOST) -> None:
        place = self.places[value]
        if place.size and place.owner not in self.valid:
            raise _Illegal(f"{who} reads {_name(place)}, which does not hold its value then")
        self.settled(place, who, queue, writes=False)
        for body in self.bodies:
            if place.owner not in body.written:
                body.found.add(place.owner)

    def write(self, value: Value, who: str, queue: str = HOST, carries: bool = False) -> None:
        """carries: it may be what a loop hands on to its next iteration."""
        place = self.places[value]
        self.settled(place, who, queue, writes=True)
        for body in self.bodies:
            if place.size and place.owner in body.found and not carries:
                raise _Illegal(
                    f"{who} writes over {_name(place)}, which the loop's next iteration reads"
                )
            body.written.add(place.owner)
        if place.size:
            self.valid = {k: p for k, p in self.valid.items() if not p.clashes(place)}
        self.valid[place.owner] = place

    def settled(self, place: _Place, who: str, queue: str, writes: bool) -> None:
        """Checks that no other queue may still be at work there."""
        for flight in self.flights:
            same = flight.place.owner == place.owner or flight.place.clashes(place)
            if same and place.size and flight.queue != queue and (writes or flight.arrives):
                raise _Illegal(
                    f"{who} does not wait for {flight.queue} to be done with {_name(place)}"
                )


def _name(place: _Place) -> str:
    what = (
        f"bytes {place.start} to {place.end} of space {place.space}" if place.space else place.owner
    )
    return f"the buffer of {what}"


def _argument(w: _Walk, op: host.ArgumentOp) -> None:
    index = op.index.value.data
    kind = [*w.plan.inputs, *w.plan.outputs][index].type
    owner = f"argument {index}"
    w.own(op, owner, "", 0, w.size_of(kind.size) * kind.dtype.size)
    if index < len(w.plan.inputs):
        w.valid[owner] = w.places[op.result]


def _weight(w: _Walk, op: host.WeightOp) -> None:
    offset, size = op.offset.value.data, w.plan.pool.get(op.key.data).nbytes
    total, owner = w.memory(op.space.data).weights_bytes, f"weight {op.key.data}"
    if offset % ALIGN or offset + size > total:
        raise _Illegal(f"{owner} lies at {offset} of {total} bytes")
    w.own(op, owner, "", offset, size)
    w.valid[owner] = w.places[op.result]


def _run(w: _Walk, op: host.RunOp) -> None:
    w.own(op, "the run", "", 0, 0)


def _alloc(w: _Walk, op: host.AllocOp) -> None:
    start, size, space = w.dim(op, "offset"), w.dim(op, "bytes"), op.space.data
    arena = evaluate(w.memory(space).arena_bytes, w.env)
    if start % ALIGN or start < 0 or size < 0 or start + size > arena:
        raise _Illegal(f"{size} bytes at {start} of an arena of {arena}")
    w.own(op, (space, op.offset.data, op.bytes.data), space, start, size)


def _view(w: _Walk, op: host.ViewOp) -> None:
    source = w.places[op.source]
    # Columns of a matrix without rows begin behind their buffer: `layout.start_of` mends only views
    # that are empty in a buffer that is not.
    offset = w.dim(op, "offset") if source.size else 0
    if not 0 <= offset <= source.size:
        raise _Illegal(f"a view from byte {offset} on of {source.size}")
    at = source.at + offset, source.size - offset
    part = (*source.part, *op.offset.data)
    w.places[op.result] = _Place(source.owner, source.space, source.start, source.end, *at, part)


def _launch(w: _Walk, op: host.LaunchOp) -> None:
    name, queue = f"kernel {op.kernel.data}", op.queue.data
    read, written = _uses(w.plan, op)
    w.queued += queue != HOST
    _must_be_apart(w, name, read, written)
    _must_fit(w, name, op)
    for value in read:
        w.read(value, name, queue)
    for value in written:
        w.write(value, name, queue)
    for value in (*read, *written):
        w.read(value, f"{name}, which writes over it,", queue)


def _must_be_apart(w: _Walk, name: str, read: list[Value], written: list[Value]) -> None:
    """What a launch writes is no other operand of its: a kernel that works in place has one operand
    for both."""
    for i, value in enumerate(written):
        place = w.places[value]
        for other in (*read, *written[i + 1 :]):
            if place.shares(w.places[other]):
                raise _Illegal(f"{name} writes {_name(place)}, which is another operand of its too")


def _must_fit(w: _Walk, name: str, op: host.LaunchOp) -> None:
    """A template's strides do not lead behind the buffers that it gets."""
    if op.queue.data != HOST:
        return
    for i, needed in reach(w.plan.kernels[op.kernel.data], w.env):
        place = w.places[op.buffers[i]]
        if 0 <= place.size < needed:
            raise _Illegal(
                f"{name} touches {needed} bytes of {_name(place)}, where {place.size} lie"
            )


def _uses(plan: Plan, op: host.LaunchOp) -> tuple[list[Value], list[Value]]:
    """The buffers that a launch reads, and those that it writes."""
    if op.queue.data == HOST:
        kernel = plan.kernels[op.kernel.data]
        return ([op.buffers[i] for i in sorted(loads(kernel))],
                [op.buffers[i] for i in sorted(stores(kernel))])  # fmt: skip
    device = next(d for d in plan.devices if d.name == op.queue.data)
    count = len(device.meanings[op.kernel.data].operands)
    return list(op.buffers[:count]), list(op.buffers[count:])


def _copy(w: _Walk, op: host.CopyOp) -> None:
    size, queue = w.dim(op, "bytes"), op.queue.data
    for value in (op.source, op.target):
        if size > w.places[value].size:
            raise _Illegal(f"host.copy of {size} bytes, where {w.places[value].size} lie")
    if size:
        w.read(op.source, "host.copy", queue)
        w.write(op.target, "host.copy", queue, carries=True)
    if queue != HOST:
        w.queued += 1
        w.flights += [
            _Flight(queue, w.queued, w.places[value], arrives)
            for value, arrives in ((op.source, False), (op.target, True))
            if w.places[value].space in ("", HOST)
        ]


def _signal(w: _Walk, op: host.SignalOp) -> None:
    w.tickets[op.ticket.value.data] = w.queued


def _wait(w: _Walk, op: host.WaitOp) -> None:
    until = w.tickets.get(op.ticket.value.data)
    if until is None:
        raise _Illegal(f"host.wait for ticket {op.ticket.value.data}, which nobody has given")
    w.flights = [f for f in w.flights if f.queue != op.queue.data or f.number > until]


def _if(w: _Walk, op: host.IfOp) -> None:
    w.read(op.cond, "host.if")
    before = dict(w.valid)
    w.block(op.then.block)
    then, w.valid = w.valid, before
    w.block(op.orelse.block)
    w.valid = {k: p for k, p in w.valid.items() if k in then}


def _when(w: _Walk, op: host.WhenOp) -> None:
    pairs = zip(op.left.data, op.right.data, strict=True)
    fits = all(evaluate(left, w.env) == evaluate(right, w.env) for left, right in pairs)
    w.block((op.then if fits else op.orelse).block)


def _for(w: _Walk, op: host.ForOp) -> None:
    trip, name = w.dim(op, "trip"), op.symbol.data
    for number in sorted({0, 1, min(trip, LONGEST) - 1}):
        if 0 <= number < trip:
            for cond in op.cond:
                w.read(cond, "host.for")
            w.env[name] = number
            w.bodies.append(_Body())
            w.block(op.body.block)
            w.bodies.pop()
    w.env.pop(name, None)


def _bind(w: _Walk, op: host.BindOp) -> None:
    w.read(op.source, "host.bind")
    w.env[op.symbol.data] = min(op.least.value.data + 3, op.greatest.value.data)


def _grow(w: _Walk, op: host.GrowOp) -> None:
    number, size = op.number.value.data, w.dim(op, "bytes")
    if size < 0:
        raise _Illegal(f"growing buffer {number} of {size} bytes")
    owner = f"growing {number}"
    w.grown[number] = max(size, w.grown.get(number, 0)) if op.keep.value.data else size
    if not op.keep.value.data:
        w.valid.pop(owner, None)


def _growing(w: _Walk, op: host.GrowingOp) -> None:
    number = op.number.value.data
    if number not in w.grown:
        raise _Illegal(f"growing buffer {number} is used before it has a size")
    w.own(op, f"growing {number}", "", 0, w.grown[number])


def _give(w: _Walk, op: host.GiveOp) -> None:
    w.read(op.source, "host.give")
    w.valid[f"argument {op.index.value.data}"] = w.places[op.source]


def _check(w: _Walk, op: host.CheckOp) -> None:
    left, right = w.dim(op, "left"), w.dim(op, "right")
    if not (left == right if op.relation.data == "eq" else left >= right):
        raise _Refused


_STEPS: dict[type[Operation], Callable[[_Walk, Any], None]] = {
    host.ArgumentOp: _argument,
    host.WeightOp: _weight,
    host.RunOp: _run,
    host.AllocOp: _alloc,
    host.ViewOp: _view,
    host.LaunchOp: _launch,
    host.CopyOp: _copy,
    host.SignalOp: _signal,
    host.WaitOp: _wait,
    host.IfOp: _if,
    host.WhenOp: _when,
    host.ForOp: _for,
    host.BindOp: _bind,
    host.CheckOp: _check,
    host.GrowOp: _grow,
    host.GrowingOp: _growing,
    host.GiveOp: _give,
    host.HostReturnOp: lambda w, op: None,
}
