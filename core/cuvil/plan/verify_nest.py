"""What is legal in a kernel: values made before they are used, types that fit, regions that yield
what their op gives, and a template with nothing beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuvil.errors import CompileError
from cuvil.ir import nest
from cuvil.ir.names import Block, Operation, Value, VerifyException
from cuvil.ir.nest_build import INDEX
from cuvil.ir.types import BufferType, ElementType
from cuvil.ops.scalars import SCALARS
from cuvil.ops.string_meaning import CALLS

# A template's buffer that it writes.
RESULT_OF = {
    "contract": 2, "few_rows": 2, "winograd": 2, "depthwise": 2, "attention": 3, "lookup": 2,
}  # fmt: skip
LOOPS = ("", "parallel", "reduce", "unroll")
BOOL = ElementType.new("bool")
STRING = ElementType.new("string")
BYTES = BufferType.new("u8")
IN_EPILOGUE = (nest.DimOp, nest.ConstantOp, nest.IndexOp, nest.LoadOp, nest.ScalarOp)


def verify_kernel(kernel: nest.KernelOp) -> None:
    """Raises CompileError naming the kernel, the op and what is wrong with it."""
    name = kernel.sym_name.data
    try:
        kernel.verify()
        block = kernel.body.block
        kinds = [arg.type for arg in block.args]
        _must(bool(kinds) and kinds[-1] == INDEX, "the last argument is no task index")
        _must(all(isinstance(k, BufferType) for k in kinds[:-1]), "an argument is no buffer")
        if isinstance(block.first_op, nest.TemplateOp):
            _template(block, block.first_op)
        else:
            _block(block, set())
    except (_Illegal, VerifyException) as error:
        raise CompileError(f"kernel {name}: {error}") from error


def stores(kernel: nest.KernelOp) -> set[int]:
    """Positions of the buffers that a kernel writes."""
    block = kernel.body.block
    template = block.first_op
    if isinstance(template, nest.TemplateOp):
        written = {template.buffers[RESULT_OF[template.kind.data]]}
    else:
        written = {op.buffer for op in kernel.body.walk() if isinstance(op, nest.StoreOp)}
        externs = [op for op in kernel.body.walk() if isinstance(op, nest.ExternOp)]
        written.update(v for op in externs for v in op.targets)
    return {i for i, arg in enumerate(block.args) if arg in written}


def loads(kernel: nest.KernelOp) -> set[int]:
    """Positions of the buffers that a kernel reads and does not write."""
    block, written = kernel.body.block, stores(kernel)
    read: set[Value] = set()
    for op in kernel.body.walk():
        if isinstance(op, nest.LoadOp):
            read.add(op.buffer)
        elif isinstance(op, nest.TemplateOp | nest.ExternOp):
            read.update(op.buffers)
        elif isinstance(op, nest.CallOp):
            read.update(op.args_)
    return {i for i, arg in enumerate(block.args) if arg in read and i not in written}


class _Illegal(Exception):
    """What is wrong, in words."""


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Illegal(otherwise)


def _block(block: Block, outer: set[Value], only: tuple[type[Operation], ...] = ()) -> None:
    """only: the kinds of op that may stand here, a yield aside; empty: all that loops are made of.

    The kernel's own block ends without a yield; every other one ends with one.
    """
    seen = outer | set(block.args)
    for op in block.ops:
        _must(type(op) in (only or _RULES) or isinstance(op, nest.NestYieldOp), f"{op.name} here")
        _must(all(v in seen for v in op.operands), f"{op.name} uses a value that is made after it")
        ends = op is block.last_op and not isinstance(block.parent_op(), nest.KernelOp)
        _must(
            isinstance(op, nest.NestYieldOp) == ends, f"{op.name} where a region ends or does not"
        )
        if not isinstance(op, nest.NestYieldOp):
            _RULES[type(op)](op)
        for region in op.regions:
            _block(region.block, seen)
        seen.update(op.results)


def _yields(block: Block, kinds: Sequence[Any], whose: str) -> None:
    _must(isinstance(block.last_op, nest.NestYieldOp), f"{whose}: its region has no yield")
    assert block.last_op is not None
    got = [v.type for v in block.last_op.operands]
    _must(got == list(kinds), f"{whose} yields {_words(got)}, not {_words(kinds)}")


def _words(kinds: Sequence[Any]) -> str:
    return f"({', '.join(map(str, kinds))})"


def _types(op: Operation, operands: Sequence[Any], results: Sequence[Any]) -> None:
    got = [v.type for v in op.operands], [v.type for v in op.results]
    want = list(operands), list(results)
    _must(got == want, f"{op.name} is {_words(got[0])} -> {_words(got[1])}, "
          f"not {_words(want[0])} -> {_words(want[1])}")  # fmt: skip


# -- ops -------------------------------------------------------------------------------------------
def _dim(op: nest.DimOp) -> None:
    _types(op, (), [INDEX])
    _must(len(op.expr.data) == 1, "nest.dim has one expression")


def _constant(op: nest.ConstantOp) -> None:
    kind, number = op.results[0].type, getattr(op.properties["value"], "value", None)
    value = getattr(number, "data", None)
    _must(kind == INDEX or isinstance(kind, ElementType), f"nest.constant is of type {kind}")
    whole = kind == INDEX or not (isinstance(kind, ElementType) and kind.dtype.is_float)
    fits = isinstance(value, int | float) and (not whole or value == int(value))
    _must(fits, f"nest.constant {op.properties['value']} is no {kind}")


def _index(op: nest.IndexOp) -> None:
    fn = op.fn.data
    known = ("add", "sub", "mul", "div", "mod", "min", "max", "lt", "le", "eq")
    _must(fn in known, f"nest.index has no function '{fn}'")
    _types(op, [INDEX, INDEX], [BOOL if fn in ("lt", "le", "eq") else INDEX])


def _scalar(op: nest.ScalarOp) -> None:
    row = SCALARS.get(op.fn.data)
    if row is None:
        raise _Illegal(f"there is no scalar function '{op.fn.data}'")
    _must(len(op.operands) == row.arity, f"scalar {row.name} takes {row.arity} operands")
    kind = op.operands[-1].type
    if not isinstance(kind, ElementType) or not row.supports(kind.data):
        raise _Illegal(f"scalar {row.name} does not take {kind}")
    params = {k: _plain(v) for k, v in op.params.data.items()} if op.params else {}
    try:
        result = row.result_dtype(kind.data, params)
        row.attributes(params)
    except KeyError as error:
        raise _Illegal(str(error.args[0])) from error
    operands = [ElementType.new(d.name) for d in row.operand_dtypes(kind.data)]
    _types(op, operands, [ElementType.new(result.name)])


def _plain(attribute: Any) -> object:
    data = getattr(attribute, "data", None)
    return attribute.value.data if data is None else data


def _convert(op: nest.ConvertOp) -> None:
    source, target = op.operands[0].type, op.results[0].type
    if target == INDEX:
        fits = isinstance(source, ElementType) and not source.dtype.is_float
    else:
        fits = source == INDEX and isinstance(target, ElementType)
    _must(fits, f"nest.convert from {source} to {target}")


def _call(op: nest.CallOp) -> None:
    row = CALLS.get(op.fn.data)
    if row is None:
        raise _Illegal(f"there is no function '{op.fn.data}'")
    buffers = (row.prepare is not None) + row.makes
    operands = [STRING] * row.texts + [INDEX] * row.numbers + [BYTES] * buffers
    _types(op, operands, [ElementType.new(row.result)])


def _load(op: nest.LoadOp) -> None:
    kind = op.buffer.type
    assert isinstance(kind, BufferType)
    _types(op, [kind, INDEX], [ElementType.new(kind.data)])


def _store(op: nest.StoreOp) -> None:
    kind = op.buffer.type
    assert isinstance(kind, BufferType)
    _types(op, [ElementType.new(kind.data), kind, INDEX], ())


def _for(op: nest.ForOp) -> None:
    kind, step, carried = op.kind.data, op.step.value.data, [v.type for v in op.carried]
    _must(kind in LOOPS, f"nest.for has no kind '{kind}'")
    _must(step > 0, f"nest.for has step {step}")
    _must(kind != "parallel" or not carried, "a parallel nest.for carries values")
    _types(op, [INDEX, INDEX, *carried], carried)
    args = [arg.type for arg in op.body.block.args]
    _must(args == [INDEX, *carried], f"nest.for has arguments {_words(args)}")
    _yields(op.body.block, carried, "nest.for")
    bounds = [v.owner for v in (op.lo, op.hi)]
    literal = all(isinstance(owner, nest.ConstantOp) for owner in bounds)
    _must(kind != "unroll" or literal, "an unrolled nest.for has bounds that are no literals")


def _if(op: nest.IfOp) -> None:
    _types(op, [BOOL], [r.type for r in op.results])
    for region in (op.then, op.orelse):
        _must(not region.block.args, "a region of nest.if has arguments")
        _yields(region.block, [r.type for r in op.results], "nest.if")


def _fail_if(op: nest.FailIfOp) -> None:
    _types(op, [BOOL], ())
    _must(op.status.value.data > 0, "nest.fail_if has no status")


def _scratch(op: nest.ScratchOp) -> None:
    size = op.bytes.data[0]
    _must(isinstance(size, int) and size >= 0, f"nest.scratch of {size} bytes is of no known size")


def _extern(op: nest.ExternOp) -> None:
    count = len(op.buffers)
    extents = sum(rank for rank in op.tensor_ranks if rank > 0)
    _must(len(op.args_) == count + extents, f"nest.extern has {len(op.args_)} operands")
    _must(all(isinstance(v.type, BufferType) for v in op.buffers), "nest.extern takes buffers")
    _must(all(v.type == INDEX for v in op.args_[count:]), "an extent of nest.extern is no index")
    apart = set(op.buffers[: count - len(op.targets)]).isdisjoint(op.targets)
    _must(apart, "nest.extern writes what it reads")


_RULES: dict[type[Operation], Callable[[Any], None]] = {
    nest.DimOp: _dim,
    nest.ConstantOp: _constant,
    nest.IndexOp: _index,
    nest.ScalarOp: _scalar,
    nest.ConvertOp: _convert,
    nest.CallOp: _call,
    nest.LoadOp: _load,
    nest.StoreOp: _store,
    nest.ForOp: _for,
    nest.IfOp: _if,
    nest.FailIfOp: _fail_if,
    nest.ScratchOp: _scratch,
    nest.ExternOp: _extern,
}


def _template(block: Block, op: nest.TemplateOp) -> None:
    kind, buffers = op.kind.data, list(op.buffers)
    _must(len(list(block.ops)) == 1, "a template has ops beside it")
    _must(kind in RESULT_OF, f"there is no template '{kind}'")
    _must(all(v in block.args for v in buffers), "a template's buffer is no argument of the kernel")
    _must(len(buffers) > RESULT_OF[kind], f"template {kind} has {len(buffers)} buffers")
    region, result = op.epilogue.block, buffers[RESULT_OF[kind]].type
    kinds = [arg.type for arg in region.args]
    indices = kinds[1:]
    fits = bool(kinds) and isinstance(kinds[0], ElementType) and set(indices) <= {INDEX}
    _must(fits, f"the epilogue has arguments {_words(kinds)}")
    assert isinstance(result, BufferType)
    _block(region, set(block.args[:-1]), IN_EPILOGUE)
    _yields(region, [ElementType.new(result.data)], "the epilogue")
