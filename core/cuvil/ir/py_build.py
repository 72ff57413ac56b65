"""Writing `py` functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, f64, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cuvil.ir import py
from cuvil.ir.py import ValueType
from cuvil.ir.py_types import BOOL, INT, STR, Scalar, Type

Params = Sequence[int | str]


class PyBuilder:
    """Appends `py` ops to a block."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def add(self, op: Operation) -> Operation:
        """Appends an op."""
        self.block.add_op(op)
        return op

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Builds into another block."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    @property
    def is_ended(self) -> bool:
        """Whether nothing behind the last op can run."""
        ends = (py.ReturnOp, py.BreakOp, py.ContinueOp, py.FailOp)
        return isinstance(self.block.last_op, ends)

    def constant(self, value: object, kind: Type) -> SSAValue:
        """A literal of a Python type, or of a numpy scalar."""
        attr: Attribute | None = None
        if kind == STR:
            attr = StringAttr(str(value))
        elif isinstance(value, bool | int) and (kind in (INT, BOOL) or isinstance(kind, Scalar)):
            attr = IntegerAttr(int(value), i64)
        elif isinstance(value, float | int):
            attr = FloatAttr(float(value), f64)
        properties = {} if attr is None else {"value": attr}
        op = py.ConstantOp.create(result_types=[ValueType(kind)], properties=properties)
        return self.add(op).results[0]

    def run(
        self,
        fn: str,
        args: Sequence[SSAValue],
        results: Sequence[Type],
        site: int | None = None,
        params: Params = (),
    ) -> Operation:
        """A `py.apply`."""
        properties: dict[str, Attribute] = {"fn": StringAttr(fn)}
        if site is not None:
            properties["site"] = IntegerAttr(site, i64)
        if params:
            texts = [StringAttr(p) if isinstance(p, str) else IntegerAttr(p, i64) for p in params]
            properties["params"] = ArrayAttr(texts)
        return self.add(
            py.ApplyOp.create(
                operands=list(args),
                result_types=[ValueType(r) for r in results],
                properties=properties,
            )
        )

    def apply(
        self,
        fn: str,
        args: Sequence[SSAValue],
        result: Type,
        site: int | None = None,
        params: Params = (),
    ) -> SSAValue:
        """A `py.apply` with a result: its value."""
        return self.run(fn, args, [result], site, params).results[0]

    def call(self, callee: str, args: Sequence[SSAValue], result: Type) -> SSAValue:
        """Calls a function of the module."""
        op = py.CallOp.create(
            operands=list(args),
            result_types=[ValueType(result)],
            properties={"callee": StringAttr(callee)},
        )
        return self.add(op).results[0]

    def get(self, variable: str, kind: Type, site: int | None = None) -> SSAValue:
        """A variable's value; with a site, it may have none."""
        properties: dict[str, Attribute] = {"variable": StringAttr(variable)}
        if site is not None:
            properties["site"] = IntegerAttr(site, i64)
        op = py.GetOp.create(result_types=[ValueType(kind)], properties=properties)
        return self.add(op).results[0]

    def set(self, variable: str, value: SSAValue) -> None:
        """Gives a variable a value."""
        properties = {"variable": StringAttr(variable)}
        self.add(py.SetOp.create(operands=[value], properties=properties))

    def if_(
        self, condition: SSAValue, then: Block, otherwise: Block, results: Sequence[Type] = ()
    ) -> list[SSAValue]:
        """One of two blocks that were built already."""
        op = py.IfOp.create(
            operands=[condition],
            result_types=[ValueType(r) for r in results],
            regions=[Region(then), Region(otherwise)],
        )
        return list(self.add(op).results)

    def while_(self, condition: Block, body: Block) -> None:
        """A loop of two blocks."""
        self.add(py.WhileOp.create(regions=[Region(condition), Region(body)]))

    def for_(self, bounds: Sequence[SSAValue], body: Block, literal: int | None) -> None:
        """A loop over a range; the body has the index as its argument."""
        properties = {} if literal is None else {"step_value": IntegerAttr(literal, i64)}
        self.add(
            py.ForOp.create(operands=list(bounds), properties=properties, regions=[Region(body)])
        )

    def yield_(self, values: Sequence[SSAValue]) -> None:
        """The results of a block."""
        self.add(py.YieldOp.create(operands=list(values)))

    def return_(self, value: SSAValue) -> None:
        """Returns."""
        self.add(py.ReturnOp.create(operands=[value]))

    def break_(self) -> None:
        """Leaves the loop."""
        self.add(py.BreakOp.create())

    def continue_(self) -> None:
        """The next trip."""
        self.add(py.ContinueOp.create())

    def fail(self, site: int) -> None:
        """Fails."""
        self.add(py.FailOp.create(properties={"site": IntegerAttr(site, i64)}))

    def map(
        self, args: Sequence[SSAValue], body: Block, result: Type | None, site: int
    ) -> SSAValue | None:
        """Element by element: a new array, or into the first operand."""
        op = py.MapOp.create(
            operands=list(args),
            result_types=[] if result is None else [ValueType(result)],
            properties={
                "site": IntegerAttr(site, i64),
                "into": IntegerAttr(int(result is None), i64),
            },
            regions=[Region(body)],
        )
        self.add(op)
        return op.results[0] if op.results else None

    def reduce(
        self, fn: str, args: Sequence[SSAValue], body: Block, result: Type, site: int
    ) -> SSAValue:
        """One number from all elements."""
        op = py.ReduceOp.create(
            operands=list(args),
            result_types=[ValueType(result)],
            properties={"fn": StringAttr(fn), "site": IntegerAttr(site, i64)},
            regions=[Region(body)],
        )
        return self.add(op).results[0]


def value_block(kinds: Sequence[Type] = ()) -> Block:
    """A block with arguments of these types."""
    return Block(arg_types=[ValueType(k) for k in kinds])


def function(name: str, block: Block, result: Type, recursive_site: int | None = None) -> py.FuncOp:
    """A function of a block that was built already."""
    properties: dict[str, Attribute] = {"sym_name": StringAttr(name), "result": ValueType(result)}
    if recursive_site is not None:
        properties["recursive"] = IntegerAttr(recursive_site, i64)
    return py.FuncOp.create(properties=properties, regions=[Region(block)])
