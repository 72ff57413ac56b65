"""Writing kernels: index arithmetic folds as it is built, loops are `with` blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import (
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cuvil.ir import nest
from cuvil.ir.attrs import Attr, to_ir, write_attrs
from cuvil.ir.dims import Dim
from cuvil.ir.types import BufferType, DimsAttr, ElementType

Index = int | SSAValue
INDEX = IndexType()


class NestBuilder:
    """Appends `nest` ops to a block. Indices are Python ints where known, else SSA values."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.outer: list[Block] = []  # the blocks around `block`, outermost first

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Builds into `block`, which lies in the current one."""
        self.outer.append(self.block)
        self.block = block
        try:
            yield
        finally:
            self.block = self.outer.pop()

    def _add(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op

    # -- indices -------------------------------------------------------------------------------
    def dim(self, expr: Dim) -> Index:
        """The value of a dim expression: an int where it is literal."""
        if isinstance(expr, int):
            return expr
        op = nest.DimOp.create(result_types=[INDEX], properties={"expr": DimsAttr.new((expr,))})
        return self._add(op).results[0]

    def value(self, index: Index) -> SSAValue:
        """An index as an SSA value."""
        if isinstance(index, SSAValue):
            return index
        attr = IntegerAttr(index, i64)
        op = nest.ConstantOp.create(result_types=[INDEX], properties={"value": attr})
        return self._add(op).results[0]

    def index(self, fn: str, a: Index, b: Index) -> Index:
        """Index arithmetic, folded where both or one trivial operand are literal."""
        folded = _fold(fn, a, b)
        if folded is not None:
            return folded
        kind: Attribute = ElementType.new("bool") if fn in ("lt", "le", "eq") else INDEX
        op = nest.IndexOp.create(
            operands=[self.value(a), self.value(b)],
            result_types=[kind],
            properties={"fn": StringAttr(fn)},
        )
        return self._add(op).results[0]

    def add(self, a: Index, b: Index) -> Index:
        return self.index("add", a, b)

    def sub(self, a: Index, b: Index) -> Index:
        return self.index("sub", a, b)

    def mul(self, a: Index, b: Index) -> Index:
        return self.index("mul", a, b)

    def div(self, a: Index, b: Index) -> Index:
        return self.index("div", a, b)

    def mod(self, a: Index, b: Index) -> Index:
        return self.index("mod", a, b)

    def compare(self, fn: str, a: Index, b: Index) -> SSAValue:
        """lt, le or eq of two indices as a bool element."""
        result = self.index(fn, a, b)
        if isinstance(result, SSAValue):
            return result
        return self.const(bool(result), "bool")

    def flatten(self, index: Sequence[Index], dims: Sequence[Dim]) -> Index:
        """Row-major element offset of a multi-index."""
        offset: Index = 0
        for i, extent in zip(index, dims, strict=True):
            offset = self.add(self.mul(offset, self.dim(extent)), i)
        return offset

    def unflatten(self, offset: Index, dims: Sequence[Dim]) -> tuple[Index, ...]:
        """The multi-index of a row-major element offset."""
        index: list[Index] = []
        for extent in reversed(dims[1:]):
            size = self.dim(extent)
            index.append(self.mod(offset, size))
            offset = self.div(offset, size)
        return (*([offset] if dims else []), *reversed(index))

    # -- elements ------------------------------------------------------------------------------
    def const(self, value: float | int | bool, dtype: str) -> SSAValue:
        """A literal element; a u64 from 2**63 on is written as the i64 of the same bits. The only
        string is the empty one, written 0."""
        attr: Attribute
        if dtype == "bool":
            attr = BoolAttr.from_bool(bool(value))
        elif ElementType.new(dtype).dtype.is_float:
            attr = FloatAttr(float(value), f64)
        else:
            attr = IntegerAttr(int(value), i64)
        kind = ElementType.new(dtype)
        op = nest.ConstantOp.create(result_types=[kind], properties={"value": attr})
        return self._add(op).results[0]

    def scalar(
        self, fn: str, *args: SSAValue, result: str | None = None, **params: Any
    ) -> SSAValue:
        """A row of the scalar table. result: its dtype where it is not the first operand's."""
        kind = ElementType.new(result) if result else args[0].type
        properties: dict[str, Attribute] = {"fn": StringAttr(fn)}
        if params:
            properties["params"] = DictionaryAttr({k: _param(v) for k, v in params.items()})
        op = nest.ScalarOp.create(operands=list(args), result_types=[kind], properties=properties)
        return self._add(op).results[0]

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        """Element conversion; none where the type is already right."""
        if dtype_of(value) == dtype:
            return value
        return self.scalar("cast", value, result=dtype, to=dtype)

    def call(
        self,
        fn: str,
        args: Sequence[Index],
        result: str,
        table: SSAValue | None = None,
        run: SSAValue | None = None,
    ) -> SSAValue:
        """A function on strings: its strings and numbers, the buffers of its table and the run."""
        operands = [self.value(a) for a in args] + [v for v in (table, run) if v is not None]
        op = nest.CallOp.create(
            operands=operands,
            result_types=[ElementType.new(result)],
            properties={"fn": StringAttr(fn)},
        )
        return self._add(op).results[0]

    def to_index(self, value: SSAValue) -> SSAValue:
        """An integer element as an index (sign-extended)."""
        op = nest.ConvertOp.create(operands=[value], result_types=[INDEX])
        return self._add(op).results[0]

    def from_index(self, index: Index, dtype: str) -> SSAValue:
        """An index as an integer element (i32, i64, ...)."""
        if isinstance(index, int):
            return self.const(index, dtype)
        op = nest.ConvertOp.create(operands=[index], result_types=[ElementType.new(dtype)])
        return self._add(op).results[0]

    # -- memory --------------------------------------------------------------------------------
    def load(self, buffer: SSAValue, offset: Index) -> SSAValue:
        kind = buffer.type
        assert isinstance(kind, BufferType)
        op = nest.LoadOp.create(
            operands=[buffer, self.value(offset)], result_types=[ElementType.new(kind.data)]
        )
        return self._add(op).results[0]

    def store(self, value: SSAValue, buffer: SSAValue, offset: Index) -> None:
        self._add(nest.StoreOp.create(operands=[value, buffer, self.value(offset)]))

    def scratch(self, bytes_: Dim, dtype: str) -> SSAValue:
        op = nest.ScratchOp.create(
            result_types=[BufferType.new(dtype)], properties={"bytes": DimsAttr.new((bytes_,))}
        )
        return self._add(op).results[0]

    def fail_if(self, cond: SSAValue, status: int) -> None:
        attr = IntegerAttr(status, i64)
        self._add(nest.FailIfOp.create(operands=[cond], properties={"status": attr}))

    def extern(
        self,
        symbol: str,
        meaning: str,
        arguments: Mapping[str, Any],
        schema: Mapping[str, Attr],
        tensors: Sequence[Sequence[Dim] | None],
        written: int,
        buffers: Sequence[SSAValue],
        listed: int | None = None,
    ) -> None:
        """Calls a C function (`nest.ExternOp`). tensors: the extents of all, None for one that is
        absent; buffers: of those that are there; listed: the first operand of a list."""
        properties: dict[str, Attribute] = {
            "symbol": StringAttr(symbol),
            "meaning": StringAttr(meaning),
            "arguments": DictionaryAttr(write_attrs(meaning, schema, arguments)),
            "ranks": to_ir("ints", [-1 if dims is None else len(dims) for dims in tensors]),
            "written": IntegerAttr(written, i64),
        }
        if listed is not None:
            properties["listed"] = IntegerAttr(listed, i64)
        extents = [self.value(self.dim(d)) for dims in tensors for d in dims or ()]
        op = nest.ExternOp.create(operands=[*buffers, *extents], properties=properties)
        self._add(op)

    # -- control -------------------------------------------------------------------------------
    @contextmanager
    def loop(
        self, lo: Index, hi: Index, carried: Sequence[SSAValue] = (), kind: str = "", step: int = 1
    ) -> Iterator[Loop]:
        """`with b.loop(0, n, [acc], kind="reduce") as l: l.yield_(f(l.iv, *l.args))`; its results
        are there after it."""
        block = Block(arg_types=[INDEX, *(v.type for v in carried)])
        lo_value, hi_value = self.value(lo), self.value(hi)
        handle = Loop(block, len(carried))
        with self.inside(block):
            yield handle
        block.add_op(nest.NestYieldOp.create(operands=handle.yielded))
        op = nest.ForOp.create(
            operands=[lo_value, hi_value, *carried],
            result_types=[v.type for v in carried],
            properties={"kind": StringAttr(kind), "step": IntegerAttr(step, i64)},
            regions=[Region(block)],
        )
        handle.results = tuple(self._add(op).results)

    def yield_(self, value: SSAValue) -> None:
        """Ends a region that gives one element."""
        self._add(nest.NestYieldOp.create(operands=[value]))

    def if_(self, cond: SSAValue, then: Any, orelse: Any) -> SSAValue:
        """The element that `then()` or `orelse()` builds; only one of them runs."""
        regions, kinds = [], []
        for branch in (then, orelse):
            block = Block()
            with self.inside(block):
                value = branch()
            block.add_op(nest.NestYieldOp.create(operands=[value]))
            regions.append(Region(block))
            kinds.append(value.type)
        assert kinds[0] == kinds[1], f"branches differ: {kinds[0]} and {kinds[1]}"
        op = nest.IfOp.create(operands=[cond], result_types=kinds[:1], regions=regions)
        return self._add(op).results[0]


def kernel_op(name: str, tasks: Dim, body: Block) -> nest.KernelOp:
    """A kernel from its finished block, whose arguments are buffers, then the task's index."""
    properties = {"sym_name": StringAttr(name), "tasks": DimsAttr.new((tasks,))}
    return nest.KernelOp.create(properties=properties, regions=[Region(body)])


def template_op(
    kind: str, spec: Mapping[str, Sequence[Dim]], buffers: Sequence[SSAValue], epilogue: Block
) -> nest.TemplateOp:
    """A template with its spec as lists of sizes."""
    sizes = {key: DimsAttr.new(tuple(dims)) for key, dims in spec.items()}
    return nest.TemplateOp.create(
        operands=list(buffers),
        properties={"kind": StringAttr(kind), "spec": DictionaryAttr(sizes)},
        regions=[Region(epilogue)],
    )


CHOICE = "choice"


def with_choice(kernel: nest.KernelOp, choice: Sequence[int]) -> nest.KernelOp:
    """A copy of a kernel of one template with numbers in its spec that say how to cut it."""
    made = kernel.clone()
    template = made.body.block.first_op
    assert isinstance(template, nest.TemplateOp)
    spec = {**template.spec.data, CHOICE: DimsAttr.new(tuple(choice))}
    template.properties["spec"] = DictionaryAttr(spec)
    return made


def renamed(kernel: nest.KernelOp, name: str) -> nest.KernelOp:
    """A copy of a kernel under another name."""
    made = kernel.clone()
    made.properties["sym_name"] = StringAttr(name)
    return made


class Loop:
    """An open loop: its induction variable, its carried values, then its results."""

    def __init__(self, block: Block, carried: int) -> None:
        self.iv: SSAValue = block.args[0]
        self.args: tuple[SSAValue, ...] = tuple(block.args[1:])
        self.yielded: list[SSAValue] = []
        self.results: tuple[SSAValue, ...] = ()
        self._carried = carried

    def yield_(self, *values: SSAValue) -> None:
        assert len(values) == self._carried, "a loop yields what it carries"
        self.yielded = list(values)


def new_kernel(name: str, buffers: Sequence[str]) -> tuple[nest.KernelOp, Block]:
    """An empty kernel of one task with buffers of these dtypes; its block's last argument is the
    task's number."""
    block = Block(arg_types=[*(BufferType.new(dtype) for dtype in buffers), INDEX])
    kernel = nest.KernelOp.create(
        properties={"sym_name": StringAttr(name), "tasks": DimsAttr.new(())},
        regions=[Region(block)],
    )
    return kernel, block


def dtype_of(value: SSAValue) -> str:
    """The dtype name of an element or of a buffer's elements."""
    kind = value.type
    assert isinstance(kind, ElementType | BufferType)
    return kind.data


def _param(value: Any) -> Attribute:
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    return IntegerAttr(value, i64) if isinstance(value, int) else FloatAttr(value, f64)


_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "eq": lambda a, b: int(a == b),
}
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1}


def _fold(fn: str, a: Index, b: Index) -> Index | None:
    if isinstance(a, int) and isinstance(b, int):
        return int(_FOLD[fn](a, b))
    if isinstance(b, int) and _NEUTRAL.get(fn) == b:
        return a
    if isinstance(a, int) and fn in ("add", "mul") and _NEUTRAL[fn] == a:
        return b
    if fn == "mul" and (a == 0 or b == 0):
        return 0
    if fn == "mod" and b == 1:
        return 0
    return None
