"""What is legal in a plan, as a check that tests and tools run: kernels, program, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuvil.errors import CompileError
from cuvil.ir import host, nest
from cuvil.ir.dims import Dim, symbols
from cuvil.ir.names import Block, Operation, Value, VerifyException
from cuvil.ir.types import DimsAttr
from cuvil.plan.plan import DevicePlan, Plan
from cuvil.plan.steps import HOST
from cuvil.plan.verify_memory import verify_memory
from cuvil.plan.verify_nest import stores, verify_kernel


def verify_plan(plan: Plan) -> None:
    """Raises CompileError naming what is illegal: in a kernel, in how the program launches it, in
    the symbols it uses, or in where its buffers lie."""
    for name, kernel in plan.kernels.items():
        if kernel.sym_name.data != name:
            raise CompileError(f"plan {plan.name}: kernel '{name}' is called '{kernel.sym_name}'")
        verify_kernel(kernel)
    try:
        plan.program.verify()
        _Checker(plan, frozenset(plan.weights)).block(
            plan.program.body.block, set(), set(plan.symbols)
        )
    except (_Illegal, VerifyException) as error:
        raise CompileError(f"plan {plan.name}: {error}") from error
    verify_memory(plan)


class _Illegal(Exception):
    """What is wrong, in words."""


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Illegal(otherwise)


@dataclass(frozen=True)
class _Checker:
    plan: Plan
    weights: frozenset[tuple[str, int]]

    def block(self, block: Block, outer: set[Value], symbols_: set[str]) -> None:
        """outer, symbols_: the values and symbols that are known where the block begins."""
        seen, known = set(outer), set(symbols_)
        _must(not block.args, "a block of a program has arguments")
        for op in block.ops:
            _must(type(op) in _RULES, f"{op.name} stands in a program")
            made = all(v in seen for v in op.operands)
            _must(made, f"{op.name} uses a value that is made after it")
            self.dims(op.name, dims_of(op), known)
            early = isinstance(op, host.HostReturnOp) and op is not block.last_op
            _must(not early, "host.return is not the last op")
            _RULES[type(op)](self, op)
            if isinstance(op, host.LaunchOp) and op.queue.data == HOST:
                name = f"kernel {op.kernel.data}"
                self.dims(name, kernel_dims(self.plan.kernels[op.kernel.data]), known)
            inner = {op.symbol.data} if isinstance(op, host.ForOp) else set()
            for region in op.regions:
                self.block(region.block, seen, known | inner)
            if isinstance(op, host.BindOp):
                known.add(op.symbol.data)
            seen.update(op.results)

    def device(self, name: str) -> DevicePlan:
        found = [d for d in self.plan.devices if d.name == name]
        _must(bool(found), f"there is no device '{name}'")
        return found[0]

    def dims(self, name: str, dims: Iterator[Dim], known: set[str]) -> None:
        for dim in dims:
            unknown = set(symbols(dim)) - known
            _must(not unknown, f"{name} uses {dim} where {_words(unknown)} is not bound")


def _words(names: set[str]) -> str:
    return ", ".join(f"'{n}'" for n in sorted(names))


def dims_of(op: Operation) -> Iterator[Dim]:
    """The dim expressions among an op's properties."""
    for attribute in op.properties.values():
        if isinstance(attribute, DimsAttr):
            yield from attribute.data


def kernel_dims(kernel: nest.KernelOp) -> Iterator[Dim]:
    """Every dim expression that a kernel or its launch evaluates."""
    yield from kernel.tasks.data
    for op in kernel.body.walk():
        yield from dims_of(op)
        if isinstance(op, nest.TemplateOp):
            for sizes in op.spec.data.values():
                yield from sizes.data  # type: ignore[attr-defined]


# -- ops -------------------------------------------------------------------------------------------
def _argument(c: _Checker, op: host.ArgumentOp) -> None:
    index, count = op.index.value.data, len(c.plan.inputs) + len(c.plan.outputs)
    _must(0 <= index < count, f"host.argument {index} of {count}")


def _weight(c: _Checker, op: host.WeightOp) -> None:
    key, offset, space = op.key.data, op.offset.value.data, op.space.data
    start = 0 if space == HOST else c.device(space).weights_offset
    _must((key, start + offset) in c.weights, f"weight {key} does not lie at {offset} of {space}")


def _alloc(c: _Checker, op: host.AllocOp) -> None:
    if op.space.data != HOST:
        c.device(op.space.data)


def _launch(c: _Checker, op: host.LaunchOp) -> None:
    name, queue, site = op.kernel.data, op.queue.data, op.site.value.data
    _must(0 <= site < len(c.plan.sites), f"{name} has no site")
    spaces = {_space(v) for v in op.buffers}
    _must(spaces <= {queue}, f"{name} runs on {queue}, its buffers lie in {_words(spaces)}")
    if queue != HOST:
        known = c.device(queue).kernels.get(name)
        _must(known is not None, f"{queue} has no kernel '{name}'")
        _must(known is None or op.dims.data == known.dims, f"{name} gets other dims than it takes")
        return
    kernel = c.plan.kernels.get(name)
    if kernel is None:
        raise _Illegal(f"there is no kernel '{name}'")
    args = kernel.body.block.args[:-1]
    _must(len(op.buffers) == len(args), f"{name} takes {len(args)} buffers, not {len(op.buffers)}")
    _must(list(op.tasks.data) == list(kernel.tasks.data), f"{name} has another number of tasks")
    for i in stores(kernel):
        _must(_writable(c.plan, op.buffers[i]), f"{name} writes its buffer {i}, which is read-only")


def _copy(c: _Checker, op: host.CopyOp) -> None:
    _must(_writable(c.plan, op.target), "host.copy writes what is read-only")
    spaces = {_space(op.source), _space(op.target)}
    on_device = op.queue.data in spaces and spaces <= {HOST, op.queue.data}
    _must(on_device, f"host.copy on {op.queue.data} between {_words(spaces)}")


def _whole(buffer: Value) -> Operation:
    """The op that makes the buffer of which this is a part."""
    owner = buffer.owner
    while isinstance(owner, host.ViewOp):
        owner = owner.source.owner
    assert isinstance(owner, Operation)
    return owner


def _space(buffer: Value) -> str:
    owner = _whole(buffer)
    return owner.space.data if isinstance(owner, host.AllocOp | host.WeightOp) else HOST


def _writable(plan: Plan, buffer: Value) -> bool:
    owner = _whole(buffer)
    if isinstance(owner, host.ArgumentOp):
        return owner.index.value.data >= len(plan.inputs)
    return isinstance(owner, host.AllocOp | host.GrowingOp)


def _if(c: _Checker, op: host.IfOp) -> None:
    _must(_space(op.cond) == HOST, "the condition of host.if lies on a device")


def _when(c: _Checker, op: host.WhenOp) -> None:
    _must(len(op.left.data) == len(op.right.data) > 0, "host.when compares nothing")


def _queued(c: _Checker, op: host.SignalOp | host.WaitOp) -> None:
    c.device(op.queue.data)
    _must(op.ticket.value.data > 0, f"{op.name} has no ticket")


def _for(c: _Checker, op: host.ForOp) -> None:
    _must(op.symbol.data not in c.plan.symbols, f"'{op.symbol.data}' is an input's symbol")
    _must(len(op.cond) <= 1, "host.for has several conditions")


def _bind(c: _Checker, op: host.BindOp) -> None:
    least, greatest = op.least.value.data, op.greatest.value.data
    _must(0 <= least <= greatest, f"host.bind from {least} to {greatest}")


def _check(c: _Checker, op: host.CheckOp) -> None:
    _must(op.relation.data in ("eq", "ge"), f"host.check has no relation '{op.relation.data}'")
    _must(0 <= op.site.value.data < len(c.plan.sites), "host.check has no site")


def _give(c: _Checker, op: host.GiveOp) -> None:
    index, first = op.index.value.data, len(c.plan.inputs)
    _must(first <= index < first + len(c.plan.outputs), f"host.give of argument {index}")
    _must(isinstance(_whole(op.source), host.GrowingOp), "host.give of a buffer that does not grow")


def _anything(c: _Checker, op: Operation) -> None:
    """Legal whatever it says; `verify_memory` looks at where buffers lie."""


_RULES: dict[type[Operation], Callable[[_Checker, Any], None]] = {
    host.ArgumentOp: _argument,
    host.WeightOp: _weight,
    host.AllocOp: _alloc,
    host.ViewOp: _anything,
    host.RunOp: _anything,
    host.LaunchOp: _launch,
    host.CopyOp: _copy,
    host.SignalOp: _queued,
    host.WaitOp: _queued,
    host.IfOp: _if,
    host.WhenOp: _when,
    host.ForOp: _for,
    host.BindOp: _bind,
    host.CheckOp: _check,
    host.GrowOp: _anything,
    host.GrowingOp: _anything,
    host.GiveOp: _give,
    host.HostReturnOp: _anything,
}
