"""The plan of a model: `host` program, kernels, and the layout of its weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cuvil.ir import host, nest
from cuvil.ir import host_build as make
from cuvil.ir.dims import Dim
from cuvil.ir.graph import Graph
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import TensorType
from cuvil.plan.arena import ALIGN
from cuvil.plan.program import Planned, plan_steps
from cuvil.plan.steps import Argument, Check, Choose, Copy, Launch, Ref, Repeat, Step, View, Weight


@dataclass(frozen=True)
class Port:
    """A named input or output."""

    name: str
    type: TensorType


@dataclass
class Plan:
    """All that code generation needs; nothing in it depends on a target's variant.

    weights: (key, byte offset) in the order they are written. sites: what `host.launch` numbers
    name: kernel, tab, the user's nodes.
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

    def weight_chunks(self) -> Iterator[bytes | memoryview]:
        """The weights' bytes in order, each constant made when it is asked for."""
        at = 0
        for key, offset in self.weights:
            if offset > at:
                yield bytes(offset - at)
            data = np.ascontiguousarray(self.pool.array(key))
            yield memoryview(data.reshape(-1).view(np.uint8))
            at = offset + data.nbytes
        if self.weights_bytes > at:
            yield bytes(self.weights_bytes - at)


def make_plan(graph: Graph, name: str = "") -> Plan:
    """Plans a graph whose rewriting is done. name: of the program, a C identifier."""
    name = name or graph.name
    planned = plan_steps(graph)
    hints = {name: (low if most is None else min(most, 512)) or 64
             for name, (low, most) in graph.bounds.items()}  # fmt: skip
    arena = planned.memory.plan({k: max(v, 16) for k, v in hints.items()})
    emitter = _HostEmitter(graph, planned, arena.offsets)
    emitter.steps(planned.steps)
    program = make.program(name, arena.bytes, emitter.block)
    symbols = graph.symbols()
    return Plan(
        name, program, planned.kernels, graph.pool, emitter.weights, emitter.weights_bytes,
        emitter.sites,
        [Port(n, tensor_type(v)) for n, v in zip(graph.input_names, graph.inputs, strict=True)],
        [Port(n, tensor_type(v)) for n, v in zip(graph.output_names, graph.outputs, strict=True)],
        symbols, [graph.bounds.get(s, (0, None)) for s in symbols], arena.bytes,
    )  # fmt: skip


@dataclass
class _HostEmitter:
    graph: Graph
    planned: Planned
    offsets: Sequence[Dim]
    block: Block = field(default_factory=Block)
    weights: list[tuple[str, int]] = field(default_factory=list)
    weights_bytes: int = 0
    sites: list[str] = field(default_factory=list)
    _offset_of: dict[str, int] = field(default_factory=dict)
    _site_of: dict[str, int] = field(default_factory=dict)

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
            op = make.weight(ref.key, self._weight(ref.key))
        elif isinstance(ref, View):
            op = make.view(self.buffer(ref.base), ref.offset)
        else:
            size = self.planned.memory.buffers[ref.number].bytes
            op = make.alloc(self.offsets[ref.number], size)
        return self.add(op).results[0]

    def _weight(self, key: str) -> int:
        if key not in self._offset_of:
            self._offset_of[key] = self.weights_bytes
            self.weights.append((key, self.weights_bytes))
            size = self.graph.pool.get(key).nbytes
            self.weights_bytes += -(-size // ALIGN) * ALIGN
        return self._offset_of[key]

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
    e.add(make.launch(step.kernel, buffers, step.tasks, e.site(step.site)))


def _copy(e: _HostEmitter, step: Copy) -> None:
    e.add(make.copy(step.bytes, e.buffer(step.source), e.buffer(step.target)))


def _choose(e: _HostEmitter, step: Choose) -> None:
    e.add(make.choose(e.buffer(step.cond), e.inner(step.then), e.inner(step.orelse)))


def _repeat(e: _HostEmitter, step: Repeat) -> None:
    e.add(make.repeat(step.symbol, step.trip, e.inner(step.body)))


def _check(e: _HostEmitter, step: Check) -> None:
    e.add(make.check(step.left, step.right, step.equal, e.site(step.site)))


_EMIT = {Launch: _launch, Copy: _copy, Choose: _choose, Repeat: _repeat, Check: _check}
