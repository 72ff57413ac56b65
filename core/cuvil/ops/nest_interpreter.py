"""Runs `nest` kernels on numpy arrays: what a kernel means, for tests.

Scalars mean what the scalar table says; f16 and bf16 are rounded after every operation. Loads and
stores outside a buffer raise IndexError, a failed `nest.fail_if` is the returned status. Tasks, or
the iterations of a parallel loop, run side by side: an op at a time on arrays of one value for each
of them; RuntimeError where they are not independent. All else runs an element at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cuvil.ir import nest
from cuvil.ir.attrs import read_attrs
from cuvil.ir.dims import evaluate, product
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.record import PRIMITIVES
from cuvil.ir.types import BufferType, ElementType
from cuvil.ops import scalars
from cuvil.ops.nest_accesses import Accesses
from cuvil.ops.string_meaning import CALLS, as_array, call
from cuvil.ops.string_records import RECORD, memory_type, to_records, to_texts

Array = np.ndarray[Any, Any]
DIVIDES = ("div", "mod")


class _Run:
    """The state of one task, or of several. A value is a number, or an array of one number for
    each iteration that runs side by side.

    mask: the iterations that run what is being run; None: all. accesses: theirs. private: how many
    elements of a scratch buffer belong to each of them, by the buffer's id; kept: those buffers.
    """

    def __init__(self, env: Mapping[str, int]) -> None:
        self.env = env
        self.values: dict[Value, Any] = {}
        self.status = 0
        self.mask: Array | None = None
        self.accesses: Accesses | None = None
        self.private: dict[int, int] = {}
        self.kept: list[Array] = []

    def block(self, block: Block, args: Sequence[Any] = ()) -> list[Any]:
        """Runs a block's ops; returns what it yields."""
        self.values.update(zip(block.args, args, strict=True))
        for op in block.ops:
            if isinstance(op, nest.NestYieldOp):
                return [self.values[v] for v in op.operands]
            _RUN[op.name](self, op)
        return []

    def get(self, op: Operation, i: int) -> Any:
        return self.values[op.operands[i]]

    def set(self, op: Operation, value: Any) -> None:
        self.values[op.results[0]] = value

    @contextmanager
    def only(self, mask: Array) -> Iterator[Array]:
        """Runs what follows for the iterations in `mask` that run at all."""
        before = self.mask
        self.mask = mask if before is None else mask & before
        try:
            yield self.mask
        finally:
            self.mask = before


def _number(attribute: Any) -> Any:
    data = getattr(attribute, "data", None)
    return attribute.value.data if data is None else data


def _constant(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ConstantOp)
    value, kind = _number(op.properties["value"]), op.results[0].type
    if not isinstance(kind, ElementType):
        run.set(op, int(value))
    elif kind.dtype.is_string:
        run.set(op, "")
    elif kind.dtype.kind == "uint":  # from 2**63 on by its bits
        run.set(op, kind.dtype.numpy.type(value % 2**kind.dtype.bits))
    else:
        run.set(op, kind.dtype.numpy.type(value))


def _dim(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.DimOp)
    run.set(op, evaluate(op.expr.data[0], run.env))


_INDEX: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": lambda a, b: min(a, b) if _plain(a, b) else np.minimum(a, b),
    "max": lambda a, b: max(a, b) if _plain(a, b) else np.maximum(a, b),
    "lt": lambda a, b: np.less(a, b),
    "le": lambda a, b: np.less_equal(a, b),
    "eq": lambda a, b: np.equal(a, b),
}


def _plain(a: Any, b: Any) -> bool:
    return not (isinstance(a, np.ndarray) or isinstance(b, np.ndarray))


def _index(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.IndexOp)
    a, b, fn = run.get(op, 0), run.get(op, 1), op.fn.data
    if fn in DIVIDES:
        a, b = _active(run, a), _active(run, b)
        if np.any(np.less(a, 0)) or np.any(np.less(b, 0)):
            raise ArithmeticError(f"div and mod are of non-negative numbers, not {a} and {b}")
        b = np.where(b == 0, 1, b) if isinstance(b, np.ndarray) else b or 1
    run.set(op, _INDEX[fn](a, b))


def _active(run: _Run, value: Any) -> Any:
    """The value, 0 in iterations that do not run."""
    if run.mask is None or not isinstance(value, np.ndarray):
        return value
    return np.where(run.mask, value, 0)


def _scalar(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ScalarOp)
    params = {k: _number(v) for k, v in op.params.data.items()} if op.params else {}
    result = scalars.evaluate(op.fn.data, *(run.values[v] for v in op.operands), **params)
    kind = op.results[0].type
    if not isinstance(kind, ElementType) or result.dtype != kind.dtype.numpy:
        raise TypeError(f"scalar {op.fn.data} gives {result.dtype}, but its type is {kind}")
    run.set(op, result[()])


def _convert(run: _Run, op: Operation) -> None:
    kind, value = op.results[0].type, run.get(op, 0)
    if isinstance(value, np.ndarray):
        to = kind.dtype.numpy if isinstance(kind, ElementType) else np.int64
        run.set(op, value.astype(to))
    else:
        run.set(op, kind.dtype.numpy.type(value) if isinstance(kind, ElementType) else int(value))


def _call(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.CallOp)
    row = CALLS[op.fn.data]
    values = [run.values[v] for v in op.operands]
    count = row.texts + row.numbers
    table = values[count] if row.prepare is not None else None
    run.set(op, call(row.name, values[:count], table)[()])


def _place(run: _Run, op: Operation, at: int, write: bool) -> tuple[Array, Any]:
    """A buffer and the offset in it, which is checked; that of a masked iteration is 0."""
    buffer, offset = run.get(op, at), run.get(op, at + 1)
    if run.accesses is not None and id(buffer) not in run.private:
        run.accesses.note(op, buffer, offset, run.mask, write)
    if run.mask is not None:
        offset = np.where(run.mask, offset, 0)
    own = run.private.get(id(buffer))
    size = buffer.size if own is None else own
    places = np.asarray(offset)
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise IndexError(f"{op.name} at {offset} of a buffer of {size} elements")
    if own is not None and run.accesses is not None:
        offset = offset + own * run.accesses.lanes
    return buffer, offset


def _load(run: _Run, op: Operation) -> None:
    buffer, offset = _place(run, op, 0, write=False)
    value = buffer[offset]
    run.set(op, to_texts(value) if buffer.dtype == RECORD else value)


def _store(run: _Run, op: Operation) -> None:
    buffer, offset = _place(run, op, 1, write=True)
    value = run.get(op, 0)
    if buffer.dtype == RECORD:
        value = to_records(value)
    if value.dtype != buffer.dtype:
        raise TypeError(f"{value.dtype} stored into a buffer of {buffer.dtype}")
    if run.mask is not None:
        value = np.broadcast_to(value, run.mask.shape)[run.mask]
        offset = offset[run.mask]
    elif isinstance(value, np.ndarray) and value.shape:
        offset = np.broadcast_to(offset, value.shape)
    buffer[offset] = value


def _for(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ForOp)
    lo, hi, step = run.get(op, 0), run.get(op, 1), op.step.value.data
    carried = [run.values[v] for v in op.carried]
    if not _plain(lo, hi):
        carried = _uneven(run, op, lo, hi, carried)
    elif op.kind.data == "parallel" and run.accesses is None and not carried and hi - lo > 1:
        count = len(range(lo, hi, step))
        with _side_by_side(run, count):
            run.block(op.body.block, [lo + step * np.arange(count)])
    else:
        for iv in range(lo, hi, step):
            carried = run.block(op.body.block, [iv, *carried])
    run.values.update(zip(op.results, carried, strict=True))


@contextmanager
def _side_by_side(run: _Run, count: int) -> Iterator[None]:
    """What runs inside is run by `count` iterations at once, and checked to be independent."""
    run.accesses = Accesses(count)
    yield
    run.accesses.check()
    run.accesses = None


def _uneven(run: _Run, op: nest.ForOp, lo: Any, hi: Any, carried: list[Any]) -> list[Any]:
    """A loop whose bounds differ between the iterations of the parallel loop around it."""
    iv = np.asarray(lo)
    while True:
        with run.only(np.less(iv, hi)) as running:
            if not running.any():
                return carried
            following = run.block(op.body.block, [iv, *carried])
            carried = [np.where(running, f, c) for f, c in zip(following, carried, strict=True)]
        iv = iv + op.step.value.data


def _if(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.IfOp)
    cond = run.get(op, 0)
    if isinstance(cond, np.ndarray):
        results = _both(run, op, cond)
    else:
        results = run.block((op.then if cond else op.orelse).block)
    run.values.update(zip(op.results, results, strict=True))


def _both(run: _Run, op: nest.IfOp, cond: Array) -> list[Any]:
    """Runs each region for the iterations that take it."""
    branches: list[list[Any]] = []
    for region, mask in ((op.then, cond), (op.orelse, ~cond)):
        with run.only(mask) as running:
            branches.append(run.block(region.block) if running.any() else [])
    then, orelse = branches
    if not then or not orelse:
        return then or orelse
    pairs = zip(then, orelse, strict=True)
    return [np.where(cond, as_array(a), as_array(b)) for a, b in pairs]


def _fail_if(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.FailIfOp)
    failed = run.get(op, 0)
    if np.any(failed if run.mask is None else failed & run.mask):
        run.status = op.status.value.data


def _scratch(run: _Run, op: Operation) -> None:
    assert isinstance(op, nest.ScratchOp) and isinstance(op.result.type, BufferType)
    kind = op.result.type.dtype
    count = evaluate(op.bytes.data[0], run.env) // kind.size
    lanes = 1 if run.accesses is None else run.accesses.lanes.size
    buffer = np.empty(count * lanes, memory_type(kind))
    if run.accesses is not None:
        run.private[id(buffer)] = count
        run.kept.append(buffer)
    run.set(op, buffer)


def _extern(run: _Run, op: Operation) -> None:
    """The numpy meaning of the primitive that the C function stands for."""
    assert isinstance(op, nest.ExternOp)
    record = PRIMITIVES[op.meaning.data]
    assert record.evaluate is not None
    shapes = [[run.values[v] for v in dims] for dims in op.extents if dims is not None]
    arrays = [
        run.values[v][: math.prod(shape)].reshape(shape)
        for v, shape in zip(op.buffers, shapes, strict=True)
    ]
    split = len(arrays) - op.written.value.data
    results = record.evaluate(arrays[:split], read_attrs(record.attrs, op.arguments.data))
    for target, result in zip(arrays[split:], results, strict=True):
        target[...] = result


_RUN: dict[str, Callable[[_Run, Operation], None]] = {
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


def run_kernel(
    kernel: nest.KernelOp,
    buffers: Sequence[Array],
    env: Mapping[str, int] | None = None,
) -> int:
    """Runs every task on these flat arrays; returns 0 or the last failing status."""
    known, status = env or {}, 0
    tasks = evaluate(product(kernel.tasks.data), known)
    if tasks > 1 and tasks > _widest_loop(kernel, known):
        run = _Run(known)
        with _side_by_side(run, tasks):
            run.block(kernel.body.block, [*buffers, np.arange(tasks)])
        return run.status
    for task in range(tasks):
        run = _Run(known)
        run.block(kernel.body.block, [*buffers, task])
        status = run.status or status
    return status


def _widest_loop(kernel: nest.KernelOp, env: Mapping[str, int]) -> int:
    """Iterations of the longest parallel loop, as far as bounds tell."""
    loops = [op for op in kernel.body.walk() if isinstance(op, nest.ForOp)]
    parallel = [op for op in loops if op.kind.data == "parallel"]
    return max((_bound(op.hi, env) - _bound(op.lo, env) for op in parallel), default=0)


def _bound(value: Value, env: Mapping[str, int]) -> int:
    """A loop's bound where it is a literal or a dim; the smaller side of a `min`; else 0."""
    op = value.owner
    if isinstance(op, nest.ConstantOp):
        return int(_number(op.properties["value"]))
    if isinstance(op, nest.DimOp):
        return evaluate(op.expr.data[0], env)
    if isinstance(op, nest.IndexOp) and op.fn.data == "min":
        return min((b for b in (_bound(v, env) for v in op.operands) if b), default=0)
    return 0


def run_region(
    block: Block,
    args: Sequence[Any],
    around: Mapping[Value, Any],
    env: Mapping[str, int],
    accesses: Accesses | None = None,
) -> list[Any]:
    """What a block of a kernel yields for these arguments, numbers or arrays that broadcast.

    around: values of the kernel that the block uses, such as buffers. accesses: is told what the
    block reads.
    """
    run = _Run(env)
    run.values.update(around)
    run.accesses = accesses
    return run.block(block, args)
