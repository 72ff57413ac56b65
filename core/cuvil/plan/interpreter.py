"""Runs a plan on numpy: its `host` program, its `nest` kernels, its templates' meanings.

The arena is one array of bytes, full of garbage at the start, so that buffers that overlap or are
read before they are written show in the numbers. Every kernel sees a buffer to its end and no
further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuvil.errors import RuntimeFailure
from cuvil.ir import host, nest
from cuvil.ir.dims import Dim, evaluate
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.record import tensor_type
from cuvil.ir.types import BufferType, TensorType
from cuvil.ops.bind import bind_symbols
from cuvil.ops.interpreter import evaluate_op
from cuvil.ops.nest_interpreter import run_kernel
from cuvil.ops.string_meaning import as_texts
from cuvil.ops.string_records import memory_type, to_records, to_texts
from cuvil.plan.plan import DevicePlan, Plan
from cuvil.plan.steps import HOST
from cuvil.plan.template_meaning import run_template

Array = np.ndarray[Any, Any]
GARBAGE = 0xFF  # as a float, this byte repeated is a NaN


def run_plan(plan: Plan, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of one run, by name.

    Raises InputError, DTypeError or ShapeMismatchError for wrong feeds, RuntimeFailure naming the
    kernel and the user's nodes where a run fails or a kernel leaves its buffers.
    """
    feeds = {name: as_texts(np.asarray(value)) for name, value in feeds.items()}
    arrays = {name: np.ascontiguousarray(value) for name, value in feeds.items()}
    types = {port.name: port.type for port in plan.inputs}
    run = _Run(plan, bind_symbols(types, feeds), weights_of(plan))
    outputs = [_room(run, port.type) for port in plan.outputs]
    inputs = [_bytes(arrays[port.name]) for port in plan.inputs]
    for data in inputs:
        data.flags.writeable = False
    run.arguments = [*inputs, *outputs]
    run.block(plan.program.body.block)
    return {
        port.name: _tensor(data, port.type, run.env)
        for port, data in zip(plan.outputs, run.arguments[len(inputs) :], strict=True)
    }


def _room(run: _Run, kind: TensorType) -> Array:
    """Memory for an output by the bounds of its extents; none where one has no bound."""
    dims = [run.plan.most(d) for d in kind.dims]
    known = [run.dim(d) for d in dims if d is not None]
    return _garbage(math.prod(known) * kind.dtype.size if len(known) == len(dims) else 0)


def weights_of(plan: Plan) -> Array:
    """The weights as one read-only array of bytes."""
    return np.frombuffer(b"".join(bytes(chunk) for chunk in plan.weight_chunks()), np.uint8)


def _garbage(size: int) -> Array:
    return np.full(size, GARBAGE, np.uint8)


def _bytes(array: Array) -> Array:
    flat = array.reshape(-1)
    return (to_records(flat) if flat.dtype == object else flat).view(np.uint8)


def _tensor(data: Array, kind: TensorType, env: Mapping[str, int]) -> Array:
    """The tensor that an output's buffer begins with, once all its dims are known."""
    shape = [evaluate(d, env) for d in kind.dims]
    count = evaluate(kind.size, env)
    array = data[: count * kind.dtype.size].view(memory_type(kind.dtype)).reshape(shape)
    return np.asarray(to_texts(array), object) if kind.dtype.is_string else array


@dataclass
class _Run:
    """One run of a program. buffers: of the values that are live, as bytes up to their ends."""

    plan: Plan
    env: dict[str, int]
    weights: Array
    arguments: list[Array] = field(default_factory=list)
    arenas: dict[str, Array] = field(default_factory=dict)
    buffers: dict[Value, Array] = field(default_factory=dict)
    growing: dict[int, Array] = field(default_factory=dict)

    def dim(self, expr: Dim) -> int:
        return evaluate(expr, self.env)

    def dim_of(self, op: Operation, name: str) -> int:
        return self.dim(op.properties[name].data[0])  # type: ignore[attr-defined]

    def block(self, block: Block) -> None:
        for op in block.ops:
            _RUN[op.name](self, op)

    def arena(self, space: str) -> Array:
        """The arena of a memory space, made when it is first used."""
        if space not in self.arenas:
            whole = self.plan if space == HOST else self.device(space)
            self.arenas[space] = _garbage(self.dim(whole.arena_bytes))
        return self.arenas[space]

    def device(self, space: str) -> DevicePlan:
        return next(d for d in self.plan.devices if d.name == space)

    def part(self, whole: Array, start: int, size: int, op: Operation) -> Array:
        if start < 0 or size < 0 or start + size > whole.size:
            raise RuntimeFailure(f"{op.name}: {size} bytes at {start} of {whole.size}")
        return whole[start : start + size]


def _argument(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.ArgumentOp)
    run.buffers[op.result] = run.arguments[op.index.value.data]


def _weight(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.WeightOp)
    size = run.plan.pool.get(op.key.data).nbytes
    start = 0 if op.space.data == HOST else run.device(op.space.data).weights_offset
    run.buffers[op.result] = run.part(run.weights, start + op.offset.value.data, size, op)


def _run(run: _Run, op: Operation) -> None:
    run.buffers[op.results[0]] = _garbage(0)


def _alloc(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.AllocOp)
    arena, size = run.arena(op.space.data), run.dim_of(op, "bytes")
    run.buffers[op.result] = run.part(arena, run.dim_of(op, "offset"), size, op)


def _view(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.ViewOp)
    source = run.buffers[op.source]
    start = run.dim_of(op, "offset") if source.size else 0  # nothing lies in an empty tensor
    run.buffers[op.result] = run.part(source, start, source.size - start, op)


def _launch(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.LaunchOp)
    if op.queue.data != HOST:
        _launch_away(run, op)
        return
    kernel = run.plan.kernels[op.kernel.data]
    kinds = [arg.type for arg in kernel.body.block.args[:-1]]
    buffers = [_typed(run.buffers[v], k) for v, k in zip(op.buffers, kinds, strict=True)]
    template = kernel.body.block.first_op
    try:
        if isinstance(template, nest.TemplateOp):
            run_template(
                template, dict(zip(kernel.body.block.args, buffers, strict=False)), run.env
            )
            return
        status = run_kernel(kernel, buffers, run.env)
    except (IndexError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise RuntimeFailure(f"{_named(run, op)}: {error}") from error
    if status:
        raise RuntimeFailure(f"{_named(run, op)} failed with status {status}")


def _launch_away(run: _Run, op: host.LaunchOp) -> None:
    """A device's kernel is opaque: what it stands for is the primitive's own meaning."""
    meaning = run.device(op.queue.data).meanings[op.kernel.data]
    tensors = [tensor_type(v) for v in (*meaning.operands, *meaning.results)]
    buffers = [run.buffers[v] for v in op.buffers]
    arrays = [_tensor(b, t, run.env) for b, t in zip(buffers, tensors, strict=True)]
    count = len(meaning.operands)
    results = evaluate_op(meaning, arrays[:count], run.env)
    for target, result in zip(arrays[count:], results, strict=True):
        target[...] = result


def _named(run: _Run, op: host.LaunchOp) -> str:
    nodes = run.plan.sites[op.site.value.data].partition("\t")[2]
    return f"kernel {op.kernel.data} of {nodes or 'no node'}"


def _typed(data: Array, kind: object) -> Array:
    assert isinstance(kind, BufferType)
    return data[: data.size // kind.dtype.size * kind.dtype.size].view(memory_type(kind.dtype))


def _copy(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.CopyOp)
    size = run.dim_of(op, "bytes")
    source = run.part(run.buffers[op.source], 0, size, op)
    run.part(run.buffers[op.target], 0, size, op)[:] = source.copy()


def _if(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.IfOp)
    run.block((op.then if run.buffers[op.cond][0] else op.orelse).block)


def _when(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.WhenOp)
    pairs = zip(op.left.data, op.right.data, strict=True)
    fits = all(run.dim(left) == run.dim(right) for left, right in pairs)
    run.block((op.then if fits else op.orelse).block)


def _for(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.ForOp)
    for number in range(run.dim_of(op, "trip")):
        if op.cond and not run.buffers[op.cond[0]][0]:
            return
        run.env[op.symbol.data] = number
        run.block(op.body.block)


def _bind(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.BindOp)
    value = int(run.buffers[op.source][:8].view(np.int64)[0])
    if not op.least.value.data <= value <= op.greatest.value.data:
        raise RuntimeFailure(
            f"shape mismatch at {run.plan.sites[op.site.value.data]}: it is {value}, outside of "
            f"{op.least.value.data} to {op.greatest.value.data}"
        )
    run.env[op.symbol.data] = value


def _check(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.CheckOp)
    left, right = run.dim_of(op, "left"), run.dim_of(op, "right")
    if not (left == right if op.relation.data == "eq" else left >= right):
        raise RuntimeFailure(f"shape mismatch at {run.plan.sites[op.site.value.data]}")


def _growing(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.GrowingOp)
    run.buffers[op.result] = run.growing.get(op.number.value.data, _garbage(0))


def _grow(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.GrowOp)
    fresh = _garbage(run.dim_of(op, "bytes"))
    if op.keep.value.data:
        old = run.growing.get(op.number.value.data, _garbage(0))
        fresh[: old.size] = old[: fresh.size]
    run.growing[op.number.value.data] = fresh


def _give(run: _Run, op: Operation) -> None:
    assert isinstance(op, host.GiveOp)
    run.arguments[op.index.value.data] = run.buffers[op.source]


_RUN: dict[str, Callable[[_Run, Operation], None]] = {
    "host.argument": _argument,
    "host.weight": _weight,
    "host.run": _run,
    "host.alloc": _alloc,
    "host.view": _view,
    "host.launch": _launch,
    "host.copy": _copy,
    "host.signal": lambda run, op: None,
    "host.wait": lambda run, op: None,
    "host.if": _if,
    "host.when": _when,
    "host.for": _for,
    "host.bind": _bind,
    "host.check": _check,
    "host.growing": _growing,
    "host.grow": _grow,
    "host.give": _give,
    "host.return": lambda run, op: None,
}
