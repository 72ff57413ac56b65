"""`nest` kernels to LLVM IR: structured loops become basic blocks, scalars go to the math table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from llvmlite import ir

from cuvil.codegen.dims_llvm import dim_value
from cuvil.codegen.extern_llvm import emit_extern
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.llvm_util import (
    I1,
    I32,
    I64,
    KERNEL_TYPE,
    PTR,
    i64,
    set_target,
)
from cuvil.codegen.loops_llvm import LoopHints
from cuvil.codegen.scalars import emit as emit_scalar
from cuvil.codegen.scalars import storage_type
from cuvil.codegen.scalars import value_type as computed_type
from cuvil.codegen.slots import SlotTable
from cuvil.codegen.strings_llvm import COMPARISONS, emit_call, emit_comparison
from cuvil.ir import nest
from cuvil.ir.dtypes import dtype as dtype_of
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.nest_build import INDEX
from cuvil.ir.types import BufferType, ElementType
from cuvil.ops.string_meaning import CALLS

I8 = ir.IntType(8)


def value_type(dtype: str) -> ir.Type:
    """The IR type of an element held in a register: i1 for bool, else as in memory."""
    return I1 if dtype == "bool" else memory_type(dtype)


def memory_type(dtype: str) -> ir.Type:
    """The IR type of an element in memory: f16, bf16 and narrow types are their bits."""
    return storage_type(dtype)


@dataclass
class KernelEmitter:
    """Emits the body of one kernel into a function."""

    module: ir.Module
    facts: TargetFacts
    slots: SlotTable
    hints: LoopHints
    b: ir.IRBuilder = field(default_factory=ir.IRBuilder)
    values: dict[Value, ir.Value] = field(default_factory=dict)
    dims: ir.Value | None = None
    scratch: ir.Value | None = None
    status: ir.Value | None = None
    scratch_used: int = 0

    def emit_block(self, block: Block) -> Sequence[ir.Value]:
        """Emits a block's ops; returns what its terminator yields."""
        for op in block.ops:
            if isinstance(op, nest.NestYieldOp):
                return [self.values[v] for v in op.operands]
            _EMIT[op.name](self, op)
        return []

    def set(self, op: Operation, value: ir.Value) -> None:
        self.values[op.results[0]] = value

    def get(self, op: Operation, i: int) -> ir.Value:
        return self.values[op.operands[i]]


def _dim(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.DimOp) and e.dims is not None
    e.set(op, dim_value(e.b, e.dims, e.slots, op.expr.data[0]))


def _constant(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.ConstantOp)
    number = op.properties["value"].value.data  # type: ignore[attr-defined]
    kind = op.results[0].type
    if kind == INDEX:
        e.set(op, i64(number))
        return
    assert isinstance(kind, ElementType)
    e.set(op, element_constant(e.b, number, kind.data, e.facts))


def element_constant(b: ir.IRBuilder, number: float, dtype: str, facts: TargetFacts) -> ir.Value:
    """A literal element as it is held in a register."""
    row = dtype_of(dtype)
    if row.is_string:
        return ir.Constant(memory_type(dtype), 0)
    value = ir.Constant(computed_type(dtype), float(number) if row.is_float else int(number))
    if row.compute is row:
        return value
    return emit_scalar("cast", b, [value], row.compute, attrs={"to": dtype}, facts=facts)


INDEX_OPS: dict[str, Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]] = {
    "add": lambda b, x, y: b.add(x, y, flags=("nsw",)),
    "sub": lambda b, x, y: b.sub(x, y, flags=("nsw",)),
    "mul": lambda b, x, y: b.mul(x, y, flags=("nsw",)),
    "div": lambda b, x, y: b.udiv(x, _nonzero(b, y)),
    "mod": lambda b, x, y: b.urem(x, _nonzero(b, y)),
    "min": lambda b, x, y: b.select(b.icmp_signed("<", x, y), x, y),
    "max": lambda b, x, y: b.select(b.icmp_signed(">", x, y), x, y),
    "lt": lambda b, x, y: b.icmp_signed("<", x, y),
    "le": lambda b, x, y: b.icmp_signed("<=", x, y),
    "eq": lambda b, x, y: b.icmp_signed("==", x, y),
}


def _nonzero(b: ir.IRBuilder, divisor: ir.Value) -> ir.Value:
    """A divisor that never traps; loops over empty axes compute addresses they never use."""
    if isinstance(divisor, ir.Constant):
        return divisor if divisor.constant else i64(1)
    return b.select(b.icmp_unsigned("==", divisor, i64(0)), i64(1), divisor)


def _index(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.IndexOp)
    e.set(op, INDEX_OPS[op.fn.data](e.b, e.get(op, 0), e.get(op, 1)))


def _scalar(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.ScalarOp)
    data = op.operands[1] if op.fn.data == "select" else op.operands[0]
    kind = data.type
    assert isinstance(kind, ElementType)
    attrs = plain_params(op)
    args = [e.values[v] for v in op.operands]
    if kind.dtype.is_string:
        e.set(op, _on_strings(e.b, op.fn.data, args))
        return
    e.set(op, emit_scalar(op.fn.data, e.b, args, kind.data, attrs=attrs, facts=e.facts))


def _on_strings(b: ir.IRBuilder, fn: str, args: Sequence[ir.Value]) -> ir.Value:
    if fn in COMPARISONS:
        return emit_comparison(b, fn, *args)
    return b.select(*args) if fn == "select" else args[0]  # or identity


def _call(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.CallOp) and e.status is not None
    row, values = CALLS[op.fn.data], [e.values[v] for v in op.operands]
    count = row.texts + row.numbers
    buffers = values[count:]
    table = buffers.pop(0) if row.prepare is not None else None
    run = buffers.pop() if row.makes else None
    result, status = emit_call(e.b, row.name, values[:count], table, run)
    e.set(op, result)
    if row.makes:  # the others cannot fail
        bad = e.b.icmp_unsigned("!=", status, ir.Constant(I32, 0))
        e.b.store(e.b.select(bad, status, e.b.load(e.status, typ=I32)), e.status)


def plain_params(op: nest.ScalarOp) -> dict[str, object]:
    """The extra numbers of a scalar op as Python values."""
    return {k: _plain(v) for k, v in op.params.data.items()} if op.params else {}


def _plain(attribute: object) -> object:
    data = getattr(attribute, "data", None)
    return data if data is not None else attribute.value.data  # type: ignore[attr-defined]


def _convert(e: KernelEmitter, op: Operation) -> None:
    source, target = op.operands[0].type, op.results[0].type
    value = e.get(op, 0)
    if isinstance(source, ElementType):
        if value.type.width < 64:
            extend = e.b.zext if source.dtype.kind in ("uint", "bool") else e.b.sext
            value = extend(value, I64)
    else:
        assert isinstance(target, ElementType)
        if target.dtype.is_float:
            value = e.b.sitofp(value, value_type(target.data))
        elif target.dtype.bits < 64:
            value = e.b.trunc(value, value_type(target.data))
    e.set(op, value)


def _load(e: KernelEmitter, op: Operation) -> None:
    kind = op.operands[0].type
    assert isinstance(kind, BufferType)
    memory = memory_type(kind.data)
    place = e.b.gep(e.get(op, 0), [e.get(op, 1)], source_etype=memory)
    value = e.b.load(place, typ=memory, align=kind.dtype.align)
    if kind.data == "bool":
        value = e.b.icmp_unsigned("!=", value, ir.Constant(memory, 0))
    e.set(op, value)


def _store(e: KernelEmitter, op: Operation) -> None:
    kind = op.operands[1].type
    assert isinstance(kind, BufferType)
    memory, value = memory_type(kind.data), e.get(op, 0)
    if kind.data == "bool":
        value = e.b.zext(value, memory)
    place = e.b.gep(e.get(op, 1), [e.get(op, 2)], source_etype=memory)
    e.b.store(value, place, align=kind.dtype.align)


def _for(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.ForOp)
    b, lo, hi = e.b, e.get(op, 0), e.get(op, 1)
    carried = [e.values[v] for v in op.carried]
    before = b.block
    loop, after = b.append_basic_block("loop"), b.append_basic_block("after")
    b.cbranch(b.icmp_signed("<", lo, hi), loop, after)
    b.position_at_end(loop)
    iv = b.phi(I64)
    iv.add_incoming(lo, before)
    phis = [b.phi(v.type) for v in carried]
    block = op.body.block
    for phi, start, arg in zip([iv, *phis], [lo, *carried], block.args, strict=True):
        e.values[arg] = phi
        if phi is not iv:
            phi.add_incoming(start, before)
    yielded = e.emit_block(block)
    if op.kind.data == "reduce":
        _reassociate(phis, yielded)
    step = b.add(iv, i64(op.step.value.data), flags=("nsw",))
    branch = b.cbranch(b.icmp_signed("<", step, hi), loop, after)
    last = b.block
    iv.add_incoming(step, last)
    for phi, value in zip(phis, yielded, strict=True):
        phi.add_incoming(value, last)
    e.hints.mark(branch, op.kind.data)
    b.position_at_end(after)
    for result, start, value in zip(op.results, carried, yielded, strict=True):
        merged = b.phi(value.type)
        merged.add_incoming(start, before)
        merged.add_incoming(value, last)
        e.values[result] = merged


def _reassociate(phis: Sequence[ir.Value], yielded: Sequence[ir.Value]) -> None:
    """Lets LLVM add up (or multiply) carried floats in any order, which it needs to vectorise."""
    for phi, value in zip(phis, yielded, strict=True):
        adds = isinstance(value, ir.Instruction) and value.opname in ("fadd", "fmul")
        if adds and phi in value.operands:
            value.flags = [*value.flags, "reassoc"]


def _if(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.IfOp)
    b = e.b
    blocks = [b.append_basic_block(n) for n in ("then", "else")]
    after = b.append_basic_block("endif")
    b.cbranch(e.get(op, 0), *blocks)
    ends = []
    for start, region in zip(blocks, (op.then, op.orelse), strict=True):
        b.position_at_end(start)
        values = e.emit_block(region.block)
        ends.append((b.block, values))
        b.branch(after)
    b.position_at_end(after)
    for i, result in enumerate(op.results):
        merged = b.phi(ends[0][1][i].type)
        for block, values in ends:
            merged.add_incoming(values[i], block)
        e.values[result] = merged


def _fail_if(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.FailIfOp) and e.status is not None
    now = e.b.load(e.status, typ=I32)
    code = ir.Constant(I32, op.status.value.data)
    e.b.store(e.b.select(e.get(op, 0), code, now), e.status)


def _scratch(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.ScratchOp) and e.scratch is not None
    size = op.properties["bytes"].data[0]  # type: ignore[attr-defined]
    if not isinstance(size, int):
        raise ValueError("scratch of a run-time size belongs into the arena")
    e.set(op, e.b.gep(e.scratch, [i64(e.scratch_used)], source_etype=I8))
    e.scratch_used += -(-size // 64) * 64


def _extern(e: KernelEmitter, op: Operation) -> None:
    assert isinstance(op, nest.ExternOp)
    emit_extern(e, op)


_EMIT: dict[str, Callable[[KernelEmitter, Operation], None]] = {
    "nest.dim": _dim,
    "nest.constant": _constant,
    "nest.index": _index,
    "nest.scalar": _scalar,
    "nest.convert": _convert,
    "nest.call": _call,
    "nest.load": _load,
    "nest.store": _store,
    "nest.for": _for,
    "nest.if": _if,
    "nest.fail_if": _fail_if,
    "nest.scratch": _scratch,
    "nest.extern": _extern,
}


def emit_kernel(
    module: ir.Module, kernel: nest.KernelOp, facts: TargetFacts, slots: SlotTable, name: str
) -> int:
    """Adds `name` (a `cuvil_kernel`) to the module; returns the scratch bytes it needs.

    The loops live in a private function whose buffers are noalias arguments: an operand that is
    both read and written is one buffer, so the promise holds.
    """
    buffers = list(kernel.body.block.args[:-1])
    inner = ir.FunctionType(I32, [PTR, I64, I64, PTR, *[PTR] * len(buffers)])
    body = ir.Function(module, inner, f"{name}.body")
    body.linkage = "internal"
    outer = ir.Function(module, KERNEL_TYPE, name)
    for function in (body, outer):
        set_target(function, facts)
    for arg in (body.args[0], *body.args[3:]):  # dims are only read, scratch is private
        arg.add_attribute("noalias")
    scratch = _emit_tasks(module, kernel, facts, slots, body)
    _emit_entry(outer, body, len(buffers))
    return scratch


def _emit_entry(outer: ir.Function, body: ir.Function, buffers: int) -> None:
    b = ir.IRBuilder(outer.append_basic_block("entry"))
    table, dims, begin, end, scratch = outer.args
    pointers = [b.load(b.gep(table, [i64(i)], source_etype=PTR), typ=PTR) for i in range(buffers)]
    b.ret(b.call(body, [dims, begin, end, scratch, *pointers]))


def _emit_tasks(
    module: ir.Module,
    kernel: nest.KernelOp,
    facts: TargetFacts,
    slots: SlotTable,
    body: ir.Function,
) -> int:
    dims, begin, end, scratch = body.args[:4]
    b = ir.IRBuilder(body.append_basic_block("entry"))
    e = KernelEmitter(module, facts, slots, LoopHints(module), b, dims=dims, scratch=scratch)
    e.status = b.alloca(I32)
    b.store(ir.Constant(I32, 0), e.status)
    block = kernel.body.block
    e.values.update(zip(block.args[:-1], body.args[4:], strict=True))
    head, loop, done = (b.append_basic_block(n) for n in ("head", "task", "done"))
    entry = b.block
    b.branch(head)
    b.position_at_end(head)
    task = b.phi(I64)
    task.add_incoming(begin, entry)
    b.cbranch(b.icmp_signed("<", task, end), loop, done)
    b.position_at_end(loop)
    e.values[block.args[-1]] = task
    e.emit_block(block)
    task.add_incoming(b.add(task, i64(1), flags=("nsw",)), b.block)
    b.branch(head)
    b.position_at_end(done)
    b.ret(b.load(e.status, typ=I32))
    return e.scratch_used
