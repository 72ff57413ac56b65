"""`host` programs to LLVM IR: the model's main function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from llvmlite import ir

from cuvil.codegen import abi
from cuvil.codegen.device_llvm import DeviceBuffer, DeviceCalls
from cuvil.codegen.dims_llvm import compute, dim_value, slot_address
from cuvil.codegen.growing_llvm import GrowingBuffers
from cuvil.codegen.llvm_util import I8, I32, I64, KERNEL_TYPE, PTR, callee, declare, i64
from cuvil.codegen.prepare_llvm import is_prepared, relation, sides_of
from cuvil.codegen.slots import SlotTable
from cuvil.ir import host
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.types import DimsAttr
from cuvil.plan.plan import DevicePlan

HOST = "host"  # the space and the queue of the host
SHAPE_MISMATCH = 4  # CUVIL_SHAPE_MISMATCH


@dataclass
class ProgramEmitter:
    """Emits a program's ops into `main(frame)`."""

    module: ir.Module
    slots: SlotTable
    kernels: Mapping[str, ir.Function]
    tasks: Mapping[str, Callable[[ir.IRBuilder, ir.Value], ir.Value]]
    launch: ir.Function
    function: ir.Function
    b: ir.IRBuilder = field(default_factory=ir.IRBuilder)
    values: dict[Value, ir.Value] = field(default_factory=dict)
    away: dict[Value, DeviceBuffer] = field(default_factory=dict)
    parts: dict[int, ir.Value] = field(default_factory=dict)
    table: ir.Value | None = None
    devices: DeviceCalls | None = None
    growing: GrowingBuffers | None = None

    @property
    def frame(self) -> ir.Value:
        return self.function.args[0]

    def part(self, number: int) -> ir.Value:
        """A pointer field of the frame, loaded once at the entry."""
        return self.parts[number]

    def dim(self, expr: object) -> ir.Value:
        return dim_value(self.b, self.part(abi.FRAME_DIMS), self.slots, expr)  # type: ignore[arg-type]

    def emit_block(self, block: Block) -> None:
        for op in block.ops:
            _EMIT[op.name](self, op)

    def offset(self, base: ir.Value, amount: ir.Value) -> ir.Value:
        return self.b.gep(base, [amount], source_etype=I8)

    def check(self, status: ir.Value) -> None:
        """Leaves main with a status that is not 0."""
        bad = self.b.icmp_unsigned("!=", status, ir.Constant(I32, 0))
        with self.b.if_then(bad, likely=False):
            self.b.ret(status)

    def poll(self) -> ir.Value:
        """The runtime's function that tells whether the run is to stop."""
        api = abi.field(self.b, self.frame, abi.FRAME, abi.FRAME_API)
        return _method(self.b, api, abi.API_POLL, abi.POLL)

    def refuse_unless(self, good: ir.Value, site: int) -> None:
        """Leaves main with a mismatch of shapes at a site."""
        with self.b.if_then(self.b.not_(good), likely=False):
            place = abi.field_address(self.b, self.frame, abi.FRAME, abi.FRAME_SITE)
            self.b.store(ir.Constant(I32, site), place)
            self.b.ret(ir.Constant(I32, SHAPE_MISMATCH))

    def bind(self, name: str, value: ir.Value) -> None:
        """Writes a symbol's slot and everything computed from it."""
        dims = self.part(abi.FRAME_DIMS)
        self.b.store(value, slot_address(self.b, dims, self.slots.of_symbol(name)))
        for slot, expr in self.slots.depending_on(name):
            self.b.store(compute(self.b, dims, self.slots, expr), slot_address(self.b, dims, slot))


def _dims_of(op: Operation, name: str) -> object:
    return op.properties[name].data[0]  # type: ignore[attr-defined]


def _argument(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.ArgumentOp)
    place = e.b.gep(e.part(abi.FRAME_IO), [i64(op.index.value.data)], source_etype=PTR)
    e.values[op.result] = e.b.load(place, typ=PTR)


def _weight(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.WeightOp)
    if op.space.data != HOST:
        offset = i64(op.offset.value.data)
        e.away[op.result] = _on(e).memory(e.b, op.space.data, abi.DEVICE_WEIGHTS, offset)
        return
    e.values[op.result] = e.offset(e.part(abi.FRAME_WEIGHTS), i64(op.offset.value.data))


def _run(e: ProgramEmitter, op: Operation) -> None:
    e.values[op.results[0]] = e.frame


def _alloc(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.AllocOp)
    if op.space.data != HOST:
        offset = e.dim(_dims_of(op, "offset"))
        e.away[op.result] = _on(e).memory(e.b, op.space.data, abi.DEVICE_ARENA, offset)
        return
    e.values[op.result] = e.offset(e.part(abi.FRAME_ARENA), e.dim(_dims_of(op, "offset")))


def _view(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.ViewOp)
    amount, whole = e.dim(_dims_of(op, "offset")), e.away.get(op.source)
    if whole is not None:
        e.away[op.result] = DeviceBuffer(whole.memory, e.b.add(whole.offset, amount))
    else:
        e.values[op.result] = e.offset(e.values[op.source], amount)


def _on(e: ProgramEmitter) -> DeviceCalls:
    assert e.devices is not None
    return e.devices


def _launch_away(e: ProgramEmitter, op: host.LaunchOp) -> None:
    buffers = [e.away[buffer] for buffer in op.buffers]
    dims = [e.dim(d) for d in op.dims.data]
    site = op.site.value.data
    e.check(_on(e).launch(e.b, op.queue.data, op.kernel.data, buffers, dims, site))


def _copy_away(e: ProgramEmitter, op: host.CopyOp) -> None:
    target, source = (e.away.get(v) or e.values[v] for v in (op.target, op.source))
    size, site = e.dim(_dims_of(op, "bytes")), op.site.value.data
    e.check(_on(e).copy(e.b, op.queue.data, target, source, size, site))


def _launch(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.LaunchOp) and e.table is not None
    if op.queue.data != HOST:
        _launch_away(e, op)
        return
    for i, buffer in enumerate(op.buffers):
        e.b.store(e.values[buffer], e.b.gep(e.table, [i64(i)], source_etype=PTR))
    site = ir.Constant(I32, op.site.value.data)
    kernel = e.kernels[op.kernel.data]
    tasks = e.tasks[op.kernel.data](e.b, e.part(abi.FRAME_DIMS))
    e.check(e.b.call(e.launch, [e.frame, kernel, e.table, tasks, site]))


def _copy(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.CopyOp)
    if op.queue.data != HOST:
        _copy_away(e, op)
        return
    memcpy = declare(
        e.module, "llvm.memmove.p0.p0.i64", ir.VoidType(), [PTR, PTR, I64, ir.IntType(1)]
    )
    size = e.dim(_dims_of(op, "bytes"))
    e.b.call(
        memcpy, [e.values[op.target], e.values[op.source], size, ir.Constant(ir.IntType(1), 0)]
    )


def _signal(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.SignalOp)
    _on(e).signal(e.b, op.queue.data, op.ticket.value.data)


def _wait(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.WaitOp)
    e.check(_on(e).wait(e.b, op.queue.data, op.ticket.value.data))


def _if(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.IfOp)
    chosen = e.b.icmp_unsigned("!=", e.b.load(e.values[op.cond], typ=I8), ir.Constant(I8, 0))
    with e.b.if_else(chosen) as (then, orelse):
        with then:
            e.emit_block(op.then.block)
        with orelse:
            e.emit_block(op.orelse.block)


def _when(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.WhenOp)
    pairs = zip(op.left.data, op.right.data, strict=True)
    fits = [e.b.icmp_signed("==", e.dim(left), e.dim(right)) for left, right in pairs]
    with e.b.if_else(reduce(e.b.and_, fits)) as (then, orelse):
        with then:
            e.emit_block(op.then.block)
        with orelse:
            e.emit_block(op.orelse.block)


def _for(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.ForOp)
    b, trip = e.b, e.dim(_dims_of(op, "trip"))
    before, head = b.block, b.append_basic_block("repeat")
    body, after = b.append_basic_block("iteration"), b.append_basic_block("repeated")
    b.branch(head)
    b.position_at_end(head)
    iv = b.phi(I64)
    iv.add_incoming(i64(0), before)
    go_on = b.icmp_signed("<", iv, trip)
    if op.cond:
        holds = b.icmp_unsigned("!=", b.load(e.values[op.cond[0]], typ=I8), ir.Constant(I8, 0))
        go_on = b.and_(go_on, holds)
    b.cbranch(go_on, body, after)
    b.position_at_end(body)
    if op.cond:
        e.check(b.call(e.poll(), [e.frame]))
    e.bind(op.symbol.data, iv)
    e.emit_block(op.body.block)
    following = b.add(iv, i64(1))
    iv.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(after)


def _bind(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.BindOp)
    value = e.b.load(e.values[op.source], typ=I64)
    low = e.b.icmp_signed(">=", value, i64(op.least.value.data))
    high = e.b.icmp_signed("<=", value, i64(op.greatest.value.data))
    e.refuse_unless(e.b.and_(low, high), op.site.value.data)
    e.bind(op.symbol.data, value)


def _check(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.CheckOp)
    if is_prepared(op, e.slots):
        return
    left, right = (e.dim(side) for side in sides_of(op))
    e.refuse_unless(relation(e.b, op, left, right), op.site.value.data)


def _growing(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.GrowingOp) and e.growing is not None
    e.values[op.result] = e.growing.address(e.b, op.number.value.data)


def _grow(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.GrowOp) and e.growing is not None
    size, keep = e.dim(_dims_of(op, "bytes")), bool(op.keep.value.data)
    e.check(e.growing.grow(e.b, op.number.value.data, size, keep))


def _give(e: ProgramEmitter, op: Operation) -> None:
    assert isinstance(op, host.GiveOp)
    place = e.b.gep(e.part(abi.FRAME_IO), [i64(op.index.value.data)], source_etype=PTR)
    e.b.store(e.values[op.source], place)


_EMIT: dict[str, Callable[[ProgramEmitter, Operation], None]] = {
    "host.argument": _argument,
    "host.weight": _weight,
    "host.run": _run,
    "host.alloc": _alloc,
    "host.view": _view,
    "host.launch": _launch,
    "host.copy": _copy,
    "host.signal": _signal,
    "host.wait": _wait,
    "host.if": _if,
    "host.when": _when,
    "host.for": _for,
    "host.bind": _bind,
    "host.check": _check,
    "host.growing": _growing,
    "host.grow": _grow,
    "host.give": _give,
    "host.return": lambda e, op: None,
}


def emit_main(
    module: ir.Module,
    program: host.ProgramOp,
    slots: SlotTable,
    kernels: Mapping[str, ir.Function],
    tasks: Mapping[str, Callable[[ir.IRBuilder, ir.Value], ir.Value]],
    name: str,
    devices: Sequence[DevicePlan] = (),
) -> ir.Function:
    """Adds `int32 name(cuvil_frame *)` that runs the program once.

    tasks: per kernel, emits the number of its tasks from the dim slots. devices: those whose
    queues the program uses."""
    found = module.globals.get("cuvil.launch")
    launch = found or _emit_launch(module)
    function = ir.Function(module, abi.MAIN, name)
    e = ProgramEmitter(module, slots, kernels, tasks, launch, function)
    entry = function.append_basic_block("entry")
    e.b = ir.IRBuilder(entry)
    _register_dims(program, slots)
    launches = [op for op in program.body.walk() if isinstance(op, host.LaunchOp)]
    width = max((len(op.buffers) for op in launches), default=0)
    e.table = e.b.alloca(PTR, max(width, 1))
    numbers = [o.number.value.data for o in program.body.walk() if isinstance(o, host.GrowOp)]
    if numbers:
        e.growing = GrowingBuffers(e.b, e.frame, max(numbers) + 1)
    for number in (abi.FRAME_ARENA, abi.FRAME_WEIGHTS, abi.FRAME_IO, abi.FRAME_DIMS):
        e.parts[number] = abi.field(e.b, e.frame, abi.FRAME, number)
    if devices:
        e.b.branch(function.append_basic_block("program"))
        e.b.position_at_end(function.blocks[-1])
        e.devices = DeviceCalls(devices, e.frame, entry)
    e.emit_block(program.body.block)
    e.b.ret(ir.Constant(I32, 0))
    return function


def _register_dims(program: host.ProgramOp, slots: SlotTable) -> None:
    """Gives every expression of the program its slot, so that whoever binds a symbol computes all
    that follows from it."""
    for op in program.body.walk():
        for attribute in op.properties.values():
            if isinstance(attribute, DimsAttr):
                for dim in attribute.data:
                    slots.encode(dim)


def _emit_launch(module: ir.Module) -> ir.Function:
    """`launch(frame, kernel, buffers, tasks, site)`: polls, profiles, runs inline or pooled."""
    kind = ir.FunctionType(I32, [PTR, PTR, PTR, I64, I32])
    function = ir.Function(module, kind, "cuvil.launch")
    function.linkage = "internal"
    function.attributes.add("noinline")
    frame, kernel, buffers, tasks, site = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.store(site, abi.field_address(b, frame, abi.FRAME, abi.FRAME_SITE))
    api = abi.field(b, frame, abi.FRAME, abi.FRAME_API)
    stop = b.call(_method(b, api, abi.API_POLL, abi.POLL), [frame])
    with b.if_then(b.icmp_unsigned("!=", stop, ir.Constant(I32, 0)), likely=False):
        b.ret(stop)
    profile = abi.field(b, frame, abi.FRAME, abi.FRAME_PROFILE)
    profiled = b.icmp_unsigned("!=", profile, ir.Constant(PTR, None))
    with b.if_then(profiled, likely=False):
        b.call(_method(b, api, abi.API_PROFILE_BEGIN, abi.PROFILE), [frame, site])
    parallel = abi.field(b, frame, abi.FRAME, abi.FRAME_PARALLEL)
    several = b.and_(
        b.icmp_unsigned("!=", parallel, ir.Constant(I32, 0)), b.icmp_signed(">", tasks, i64(1))
    )
    result = b.alloca(I32)
    with b.if_else(several) as (pool, inline):
        with pool:
            run = _method(b, api, abi.API_PARALLEL_FOR, abi.PARALLEL_FOR)
            b.store(b.call(run, [frame, kernel, buffers, tasks, site]), result)
        with inline:
            dims = abi.field(b, frame, abi.FRAME, abi.FRAME_DIMS)
            scratch = abi.field(b, frame, abi.FRAME, abi.FRAME_SCRATCH)
            b.store(
                b.call(callee(b, kernel, KERNEL_TYPE), [buffers, dims, i64(0), tasks, scratch]),
                result,
            )
    with b.if_then(profiled, likely=False):
        b.call(_method(b, api, abi.API_PROFILE_END, abi.PROFILE), [frame, site])
    b.ret(b.load(result, typ=I32))
    return function


def _method(b: ir.IRBuilder, api: ir.Value, number: int, kind: ir.FunctionType) -> ir.Value:
    return callee(b, abi.field(b, api, abi.API, number), kind)
