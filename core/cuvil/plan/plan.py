"""The plan of a model: `host` program, kernels, and the layout of its weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Region, SSAValue

from cuvil.ir import host, nest
from cuvil.ir.dims import Dim
from cuvil.ir.graph import Graph
from cuvil.ir.pool import Pool
from cuvil.ir.record import tensor_type
from cuvil.ir.types import BufferType, DimsAttr, TensorType
from cuvil.plan.arena import ALIGN
from cuvil.plan.program import Planned, plan_steps
from cuvil.plan.steps import Argument, Choose, Copy, Launch, Ref, Repeat, Step, View, Weight

BYTES = BufferType.new("u8")


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


def make_plan(graph: Graph) -> Plan:
    """Plans a graph whose rewriting is done."""
    planned = plan_steps(graph)
    hints = {name: (low if most is None else min(most, 512)) or 64
             for name, (low, most) in graph.bounds.items()}  # fmt: skip
    arena = planned.memory.plan({k: max(v, 16) for k, v in hints.items()})
    emitter = _HostEmitter(graph, planned, arena.offsets)
    emitter.steps(planned.steps)
    emitter.block.add_op(host.HostReturnOp.create())
    program = host.ProgramOp.create(
        properties={
            "sym_name": StringAttr(graph.name),
            "arena_bytes": DimsAttr.new((arena.bytes,)),
        },
        regions=[Region(emitter.block)],
    )
    symbols = graph.symbols()
    return Plan(
        graph.name, program, planned.kernels, graph.pool, emitter.weights, emitter.weights_bytes,
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

    def buffer(self, ref: Ref) -> SSAValue:
        """The reference as a value in the current block."""
        if isinstance(ref, Argument):
            op = host.ArgumentOp.create(
                result_types=[BYTES], properties={"index": IntegerAttr(ref.index, i64)}
            )
        elif isinstance(ref, Weight):
            properties = {
                "key": StringAttr(ref.key), "offset": IntegerAttr(self._weight(ref.key), i64),
            }  # fmt: skip
            op = host.WeightOp.create(result_types=[BYTES], properties=properties)
        elif isinstance(ref, View):
            base = self.buffer(ref.base)
            op = host.ViewOp.create(
                operands=[base], result_types=[BYTES],
                properties={"offset": DimsAttr.new((ref.offset,))},
            )  # fmt: skip
        else:
            planned = self.planned.memory.buffers[ref.number]
            properties = {
                "offset": DimsAttr.new((self.offsets[ref.number],)),
                "bytes": DimsAttr.new((planned.bytes,)),
                "space": StringAttr("host"),
            }
            op = host.AllocOp.create(result_types=[BYTES], properties=properties)
        self.block.add_op(op)
        return op.results[0]

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

    def region(self, steps: Sequence[Step]) -> Region:
        outer, self.block = self.block, Block()
        self.steps(steps)
        self.block.add_op(host.HostReturnOp.create())
        inner, self.block = self.block, outer
        return Region(inner)


def _launch(e: _HostEmitter, step: Launch) -> None:
    e.block.add_op(
        host.LaunchOp.create(
            operands=[e.buffer(ref) for ref in step.buffers],
            properties={
                "kernel": StringAttr(step.kernel),
                "tasks": DimsAttr.new((step.tasks,)),
                "site": IntegerAttr(e.site(step.site), i64),
                "queue": StringAttr("host"),
            },
        )
    )


def _copy(e: _HostEmitter, step: Copy) -> None:
    e.block.add_op(
        host.CopyOp.create(
            operands=[e.buffer(step.source), e.buffer(step.target)],
            properties={"bytes": DimsAttr.new((step.bytes,))},
        )
    )


def _choose(e: _HostEmitter, step: Choose) -> None:
    cond = e.buffer(step.cond)
    regions = [e.region(step.then), e.region(step.orelse)]
    e.block.add_op(host.IfOp.create(operands=[cond], regions=regions))


def _repeat(e: _HostEmitter, step: Repeat) -> None:
    e.block.add_op(
        host.ForOp.create(
            properties={"symbol": StringAttr(step.symbol), "trip": DimsAttr.new((step.trip,))},
            regions=[e.region(step.body)],
        )
    )


_EMIT = {Launch: _launch, Copy: _copy, Choose: _choose, Repeat: _repeat}
