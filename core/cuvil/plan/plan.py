"""The plan of a model: `host` program, kernels, and the layout of its weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from cuvil.extents import Extents
from cuvil.ir import host, nest
from cuvil.ir import host_build as make
from cuvil.ir.dims import Dim, dim_max, evaluate
from cuvil.ir.dims import symbols as symbols_of
from cuvil.ir.dims_upper import Top, upper_bound
from cuvil.ir.graph import Graph
from cuvil.ir.groups import Groups
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.plan.arena import ALIGN, ArenaPlan
from cuvil.plan.conditions import Ranges
from cuvil.plan.devices import Assignment, DeviceKernel
from cuvil.plan.kernel import Kernels
from cuvil.plan.memory import hints_of
from cuvil.plan.program import Planned, plan_steps
from cuvil.plan.special import bytes_from
from cuvil.plan.steps import (
    HOST,
    Argument,
    Bind,
    Check,
    Choose,
    Copy,
    Give,
    Grow,
    Launch,
    Ref,
    Repeat,
    Run,
    Signal,
    Step,
    View,
    Wait,
    Weight,
)
from cuvil.plan.templates import Templates
from cuvil.plan.weights import fill, stream


@dataclass(frozen=True)
class Port:
    """A named input or output."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class DevicePlan:
    """What a model needs of a device: an arena, a part of the weights, kernels by name.

    meanings: for each kernel, an op that it was made for.
    """

    name: str
    arena_bytes: Dim
    weights_offset: int
    weights_bytes: int
    kernels: dict[str, DeviceKernel]
    meanings: dict[str, Operation] = field(default_factory=dict)


@dataclass
class Plan:
    """All that code generation needs; nothing in it depends on a target's variant.

    weights: (key, byte offset) in the order they are written. sites: what `host.launch` numbers
    name: kernel, tab, the user's nodes. grouped, declared: as of `Graph`.
    special: extents that have a program of their own.
    """

    name: str
    program: host.ProgramOp
    kernels: dict[str, nest.KernelOp]
    pool: Pool
    weights: list[tuple[str, int]]
    weights_bytes: int
    sites: list[str]
    inputs: list[Port]
    outputs: list[Port]
    symbols: tuple[str, ...]
    bounds: list[tuple[int, int | None]]
    arena_bytes: Dim
    devices: list[DevicePlan] = field(default_factory=list)
    tops: Mapping[str, Top] = field(default_factory=dict)
    grouped: Groups | None = None
    declared: Mapping[str, Extents] = field(default_factory=dict)
    special: Sequence[Mapping[str, int]] = ()

    @property
    def groups(self) -> Groups:
        """Inputs and outputs as a caller sees them."""
        tensors = ([p.name for p in self.inputs], [p.name for p in self.outputs])
        return self.grouped or Groups.of_tensors(*tensors)

    def most(self, dim: Dim) -> Dim | None:
        """The upper bound of an extent that a run finds, of the inputs' symbols; None: none."""
        return upper_bound(dim, self.tops, dict(zip(self.symbols, self.bounds, strict=True)))

    def is_produced(self, port: Port) -> bool:
        """Whether an output has an extent that only the run knows."""
        return any(not set(symbols_of(d)) <= set(self.symbols) for d in port.type.dims)

    def is_unbounded(self, port: Port) -> bool:
        """Whether an output has an extent without upper bound."""
        return any(self.most(d) is None for d in port.type.dims)

    def weight_chunks(self) -> Iterator[memoryview]:
        """The weights' bytes in order, each constant made when it is asked for, or one before."""
        return stream(self.pool, self.weights, self.weights_bytes)

    def put_weights(self, target: np.ndarray) -> None:
        """Writes the weights into zeros: uint8, `weights_bytes` of them."""
        fill(target, self.pool, self.weights)


def make_plan(
    graph: Graph,
    name: str = "",
    assignment: Assignment | None = None,
    templates: Templates | None = None,
    special: Sequence[tuple[Mapping[str, int], Graph]] = (),
    dynamic: bool = False,
    schedule: bool = True,
) -> Plan:
    """Plans a graph whose rewriting is done. name: of the program, a C identifier. templates: what
    generators may be asked for (None: core's). special: the same graph for fixed extents of some
    symbols, of which a run takes the first that fits; they share weights and equal kernels.
    dynamic: without an arena, see `Memory`. schedule: whether kernels may run in another order than
    the graph's, where the arena is smaller for it."""
    name = name or graph.name
    assignment = assignment or Assignment()
    aligns = {HOST: ALIGN} | {d.name: max(d.align, ALIGN) for d in assignment.devices}

    def steps_of(graph: Graph, kernels: Kernels, prefix: str = "") -> Planned:
        steps = partial(plan_steps, graph, assignment, templates, prefix=prefix, dynamic=dynamic)
        if not schedule or dynamic:
            return steps(kernels=kernels)
        return _in_less(steps, kernels)

    planned = steps_of(graph, Kernels())
    emitter = _HostEmitter(graph, planned, _arenas(planned, aligns), aligns)
    emitter.steps(planned.steps)
    arenas = {space: arena.bytes for space, arena in emitter.arenas.items()}
    for fixed, other in reversed(special):
        found = steps_of(other, emitter.planned.kernels, _prefix(fixed))
        inner = emitter.program(found, _arenas(found, aligns))
        rest, emitter.block = emitter.block, Block()
        emitter.add(make.when(fixed, inner, rest))
        for space, arena in emitter.arenas.items():
            arenas[space] = dim_max(arenas[space], bytes_from(fixed, arena.bytes))
    program = make.program(name, arenas[HOST], emitter.block)
    symbols = graph.symbols()
    weights, starts = _lay_out(emitter.weights)
    devices = [
        DevicePlan(
            space,
            arenas[space],
            starts[space],
            emitter.weights[space].bytes,
            kernels,
            assignment.meanings,
        )
        for space, kernels in assignment.kernels.items()
        if kernels
    ]
    return Plan(
        name, program, emitter.planned.kernels.ops, graph.pool, weights, starts[""], emitter.sites,
        [Port(n, tensor_type(v)) for n, v in zip(graph.input_names, graph.inputs, strict=True)],
        [Port(n, tensor_type(v)) for n, v in zip(graph.output_names, graph.outputs, strict=True)],
        symbols, [graph.bounds.get(s, (0, None)) for s in symbols], arenas[HOST], devices,
        planned.memory.tops, graph.groups, graph.declared, [fixed for fixed, _ in special],
    )  # fmt: skip


def _arenas(planned: Planned, aligns: Mapping[str, int]) -> dict[str, ArenaPlan]:
    """Where the buffers of each memory space lie."""
    return {space: planned.memory.plan(space, align) for space, align in aligns.items()}


def _in_less(steps: Callable[..., Planned], kernels: Kernels) -> Planned:
    """The program in the scheduled order, or in the graph's where the scheduled one needs more."""
    found = steps(kernels=kernels.copy(), schedule=True)
    if not found.moved:
        return found
    usual = steps(kernels=found.kernels.copy())
    sizes = [each.memory.plan().bytes for each in (found, usual)]
    names = sorted({name for size in sizes for name in symbols_of(size)})
    samples = _samples(names, found.memory.ranges)
    less = all(evaluate(sizes[0], at) <= evaluate(sizes[1], at) for at in samples)
    return found if less else steps(kernels=kernels)


def _samples(names: Sequence[str], ranges: Ranges) -> list[dict[str, int]]:
    """Extents of symbols to compare sizes at: as planned with, the least, large ones."""
    known = {name: ranges.get(name, (0, None)) for name in names}
    usual = hints_of(known)
    least = {name: max(low, 1) for name, (low, _) in known.items()}
    large = {name: most or 8 * usual[name] for name, (_, most) in known.items()}
    return [usual, least, large]


def _prefix(fixed: Mapping[str, int]) -> str:
    """What the kernels of a program for fixed extents are called: `batch4_`."""
    words = (re.sub(r"\W", "_", name, flags=re.ASCII) for name in fixed)
    return "".join(f"{w}{v}_" for w, v in zip(words, fixed.values(), strict=True))


@dataclass
class _Weights:
    """The constants of one memory space: key -> byte offset."""

    align: int
    offsets: dict[str, int] = field(default_factory=dict)
    bytes: int = 0


def _lay_out(spaces: Mapping[str, _Weights]) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """All weights with their offsets, the host's first, and where each space's begin ("": end)."""
    rows: list[tuple[str, int]] = []
    starts, at = {}, 0
    for space, weights in spaces.items():
        starts[space] = at
        rows += [(key, at + offset) for key, offset in weights.offsets.items()]
        at += weights.bytes
    return rows, {**starts, "": at}


@dataclass
class _HostEmitter:
    graph: Graph
    planned: Planned
    arenas: Mapping[str, ArenaPlan]
    aligns: Mapping[str, int]
    block: Block = field(default_factory=Block)
    weights: dict[str, _Weights] = field(default_factory=dict)
    sites: list[str] = field(default_factory=list)
    _offsets: list[Dim] = field(default_factory=list)
    _site_of: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights = {space: _Weights(align) for space, align in self.aligns.items()}
        self._place()

    def _place(self) -> None:
        rows = {space: iter(arena.offsets) for space, arena in self.arenas.items()}
        buffers = self.planned.memory.buffers
        self._offsets = [0 if b.grows else next(rows[b.space]) for b in buffers]

    def program(self, planned: Planned, arenas: Mapping[str, ArenaPlan]) -> Block:
        """Another program on the same weights, in a block of its own."""
        self.planned, self.arenas = planned, arenas
        self._place()
        return self.inner(planned.steps)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            _EMIT[type(step)](self, step)

    def add(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op

    def buffer(self, ref: Ref) -> Value:
        """The reference as a value in the current block."""
        if isinstance(ref, Argument):
            op = make.argument(ref.index)
        elif isinstance(ref, Weight):
            op = make.weight(ref.key, self._weight(ref), ref.space)
        elif isinstance(ref, Run):
            op = make.run()
        elif isinstance(ref, View):
            op = make.view(self.buffer(ref.base), ref.offset)
        else:
            buffer = self.planned.memory.buffers[ref.number]
            if buffer.grows:
                op = make.growing(ref.number)
            else:
                op = make.alloc(self._offsets[ref.number], buffer.bytes, buffer.space)
        return self.add(op).results[0]

    def _weight(self, ref: Weight) -> int:
        space = self.weights[ref.space]
        if ref.key not in space.offsets:
            space.offsets[ref.key] = space.bytes
            size = self.graph.pool.get(ref.key).nbytes
            space.bytes += -(-size // space.align) * space.align
        return space.offsets[ref.key]

    def site(self, text: str) -> int:
        if text not in self._site_of:
            self._site_of[text] = len(self.sites)
            self.sites.append(text)
        return self._site_of[text]

    def inner(self, steps: Sequence[Step]) -> Block:
        """The steps in a block of their own."""
        outer, self.block = self.block, Block()
        self.steps(steps)
        block, self.block = self.block, outer
        return block


def _launch(e: _HostEmitter, step: Launch) -> None:
    buffers = [e.buffer(ref) for ref in step.buffers]
    site = e.site(step.site)
    e.add(make.launch(step.kernel, buffers, step.tasks, site, step.queue, step.dims))


def _copy(e: _HostEmitter, step: Copy) -> None:
    source, target = e.buffer(step.source), e.buffer(step.target)
    site = e.site(step.site) if step.site else -1
    e.add(make.copy(step.bytes, source, target, step.queue, site))


def _signal(e: _HostEmitter, step: Signal) -> None:
    e.add(make.signal(step.queue, step.ticket))


def _wait(e: _HostEmitter, step: Wait) -> None:
    e.add(make.wait(step.queue, step.ticket))


def _choose(e: _HostEmitter, step: Choose) -> None:
    e.add(make.choose(e.buffer(step.cond), e.inner(step.then), e.inner(step.orelse)))


def _repeat(e: _HostEmitter, step: Repeat) -> None:
    cond = () if step.cond is None else (e.buffer(step.cond),)
    e.add(make.repeat(step.symbol, step.trip, cond, e.inner(step.body)))


def _check(e: _HostEmitter, step: Check) -> None:
    e.add(make.check(step.left, step.right, step.equal, e.site(step.site)))


def _bind(e: _HostEmitter, step: Bind) -> None:
    source = e.buffer(step.source)
    e.add(make.bind(step.symbol, source, step.least, step.greatest, e.site(step.site)))


def _grow(e: _HostEmitter, step: Grow) -> None:
    e.add(make.grow(step.buffer.number, step.bytes, step.keep))


def _give(e: _HostEmitter, step: Give) -> None:
    e.add(make.give(step.index, e.buffer(step.buffer)))


_EMIT: dict[type[Step], Callable[[_HostEmitter, Any], None]] = {
    Launch: _launch, Copy: _copy, Signal: _signal, Wait: _wait, Choose: _choose, Repeat: _repeat,
    Check: _check, Bind: _bind, Grow: _grow, Give: _give,
}  # fmt: skip
