"""Functions of the `py` dialect as LLVM functions: blocks, loops, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from cuvil.codegen.llvm_util import I64, VOID, address, i64
from cuvil.codegen.python.elementwise import emit_map, emit_reduce
from cuvil.codegen.python.emit import Emit
from cuvil.codegen.python.loops import Access, Collection, accesses, collection
from cuvil.codegen.python.texts import constant
from cuvil.codegen.python.values import llvm_type, slots, store_value, struct
from cuvil.ir import py
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.py_types import INT, NONE, STR, Type, Union

Functions = Mapping[str, ir.Function]


def site_of(op: Any) -> int:
    """The number of an op's failure."""
    return op.site.value.data if op.site is not None else 0


class FunctionEmitter:
    """Emits the body of one function."""

    def __init__(self, e: Emit, op: py.FuncOp, functions: Functions) -> None:
        self.e, self.op, self.functions = e, op, functions
        self.values: dict[Value, ir.Value] = {}
        self.variables: dict[str, ir.Value] = {}
        self.bound: dict[str, ir.Value] = {}
        self.loops: list[tuple[ir.Block, ir.Block]] = []  # where continue and break go
        self.safe: dict[Operation, frozenset[int]] = {}
        self.cloning = True
        self.result: Type = op.result.data

    def run(self) -> None:
        """Emits everything; `e` is at the start of an empty function."""
        block = self.op.body.block
        for variable in _checked_variables(block):
            self.bound[variable] = self.e.variable(ir.IntType(1))
            self.e.b.store(ir.Constant(ir.IntType(1), 0), self.bound[variable])
        for argument, value in zip(block.args, self.e.b.function.args[1:], strict=True):
            self.values[argument] = value
        if self.op.recursive is not None:
            site = i64(self.op.recursive.value.data)
            self.e.support("py_enter", VOID, [site])
        self.block(block)
        if not self.e.b.block.is_terminated:
            self.e.b.unreachable()

    # -- ops -----------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        """Emits ops until one ends the block."""
        for op in block.ops:
            if self.e.b.block.is_terminated:
                return
            _EMITTERS[type(op)](self, op)

    def yielded(self, block: Block) -> list[ir.Value]:
        """Emits a block; the values that it yields."""
        self.block(block)
        last = block.last_op
        return [self.values[v] for v in last.operands] if isinstance(last, py.YieldOp) else []

    def constant(self, op: py.ConstantOp) -> None:
        kind, attr = py.type_of(op.result), op.value
        if kind == NONE or attr is None:
            value: ir.Value = ir.Constant(llvm_type(kind), 0)
        elif kind == STR:
            value = constant(self.e, _literal(attr))
        elif llvm_type(kind) in (ir.DoubleType(), ir.FloatType()):
            value = ir.Constant(llvm_type(kind), float(_literal(attr)))
        else:
            value = ir.Constant(llvm_type(kind), int(_literal(attr)))
        self.values[op.result] = value

    def apply(self, op: py.ApplyOp) -> None:
        params = [_literal(p) for p in op.params or ()]
        made = self.e.apply(
            op.fn.data,
            [py.type_of(v) for v in op.args_],
            [py.type_of(v) for v in op.results_],
            [self.values[v] for v in op.args_],
            site_of(op),
            params,
            self.safe.get(op, frozenset()),
        )
        if op.results_:
            self.values[op.results_[0]] = made

    def call(self, op: py.CallOp) -> None:
        args = [self.e.context, *(self.values[v] for v in op.args_)]
        self.values[op.result] = self.e.b.call(self.functions[op.callee.data], args)

    def place(self, variable: str, kind: Type) -> ir.Value:
        if variable not in self.variables:
            self.variables[variable] = self.e.variable(llvm_type(kind))
        return self.variables[variable]

    def get(self, op: py.GetOp) -> None:
        kind = py.type_of(op.result)
        place = self.place(op.variable.data, kind)
        if op.site is not None:
            known = self.e.b.load(self.bound[op.variable.data], typ=ir.IntType(1))
            self.e.fail_if(self.e.b.not_(known), site_of(op))
        self.values[op.result] = self.e.b.load(place, typ=llvm_type(kind))

    def set(self, op: py.SetOp) -> None:
        variable = op.variable.data
        self.e.b.store(self.values[op.value], self.place(variable, py.type_of(op.value)))
        if variable in self.bound:
            self.e.b.store(ir.Constant(ir.IntType(1), 1), self.bound[variable])

    def if_(self, op: py.IfOp) -> None:
        b = self.e.b
        then, other, after = (b.append_basic_block(n) for n in ("then", "else", "endif"))
        b.cbranch(self.values[op.condition], then, other)
        ends: list[tuple[list[ir.Value], ir.Block]] = []
        for start, region in ((then, op.then), (other, op.otherwise)):
            b.position_at_end(start)
            found = self.yielded(region.block)
            if not b.block.is_terminated:
                ends.append((found, b.block))
                b.branch(after)
        b.position_at_end(after)
        if not ends:
            b.unreachable()
        for i, result in enumerate(op.results_):
            phi = b.phi(llvm_type(py.type_of(result)))
            for found, block in ends:
                phi.add_incoming(found[i], block)
            self.values[result] = phi

    def while_(self, op: py.WhileOp) -> None:
        found = collection(op)
        if found is None:
            self.plain_while(op)
        else:
            self.collect(op, found)

    def collect(self, op: py.WhileOp, found: Collection) -> None:
        """Twice: first without leaving on failures, which LLVM makes vectors of; after one, again
        from the start, so that it is the first one that is told."""
        e, made = self.e, self.values[found.put.args_[0]]
        kind = py.type_of(found.put.args_[0])
        places = [self.place(name, py.type_of(value)) for name, value in found.written.items()]
        types = [llvm_type(py.type_of(value)) for value in found.written.values()]
        before = [e.b.load(place, typ=t) for place, t in zip(places, types, strict=True)]
        at = e.b.load(self.place(found.counter.variable.data, INT), typ=I64)
        length = e.apply("list.len", [kind], [INT], [self.values[found.source]])
        e.apply("list.room", [kind], [], [made, at, length])
        lost = e.variable(ir.IntType(1))
        e.b.store(ir.Constant(ir.IntType(1), 0), lost)
        e.lost = lost
        self.plain_while(op)
        e.lost = None
        with e.unlikely(e.b.load(lost, typ=ir.IntType(1))):
            for place, value in zip(places, before, strict=True):
                e.b.store(value, place)
            self.plain_while(op)

    def plain_while(self, op: py.WhileOp) -> None:
        b = self.e.b
        head, body, after = (b.append_basic_block(n) for n in ("while", "do", "end"))
        b.branch(head)
        b.position_at_end(head)
        (condition,) = self.yielded(op.condition.block)
        b.cbranch(condition, body, after)
        b.position_at_end(body)
        self.trip(op.body.block, head, after)
        b.position_at_end(after)

    def trip(self, block: Block, following: ir.Block, after: ir.Block) -> None:
        """The body of a loop, which goes on with `following`."""
        self.loops.append((following, after))
        self.block(block)
        self.loops.pop()
        if not self.e.b.block.is_terminated:
            self.e.b.branch(following)

    def for_(self, op: py.ForOp) -> None:
        """Twice where indices are known to be inside for all trips: with and without tests."""
        b = self.e.b
        bounds = [self.values[v] for v in (op.start, op.stop, op.step)]
        found = accesses(op) if self.cloning else []
        after = b.append_basic_block("end")
        if not found:
            self.loop(op, bounds, after)
            b.position_at_end(after)
            return
        fast, slow = b.append_basic_block("inside"), b.append_basic_block("tested")
        b.cbranch(self.all_inside(found, bounds), fast, slow)
        b.position_at_end(fast)
        for access in found:
            known = self.safe.get(access.op, frozenset())
            self.safe[access.op] = known | {access.position}
        self.loop(op, bounds, after)
        for access in found:
            self.safe[access.op] -= {access.position}
        b.position_at_end(slow)
        self.cloning = False
        self.loop(op, bounds, after)
        self.cloning = True
        b.position_at_end(after)

    def all_inside(self, found: list[Access], bounds: list[ir.Value]) -> ir.Value:
        """Whether every access is inside its axis for every trip; the step is 1."""
        b, (start, stop, _) = self.e.b, bounds
        inside = b.icmp_signed("<", start, stop)
        for access in found:
            array = self.invariant(access)
            extent = b.extract_value(array, [1, access.position])
            room = b.sub(extent, i64(access.offset))
            inside = b.and_(inside, b.icmp_signed(">=", start, i64(-access.offset)))
            inside = b.and_(inside, b.icmp_signed("<=", stop, room))
        return inside

    def invariant(self, access: Access) -> ir.Value:
        """The array of an access, before the loop."""
        if access.variable is None:
            return self.values[access.array]
        kind = py.type_of(access.array)
        return self.e.b.load(self.place(access.variable, kind), typ=llvm_type(kind))

    def loop(self, op: py.ForOp, bounds: list[ir.Value], after: ir.Block) -> None:
        """One copy of a loop, from here; it ends in `after`."""
        b, (start, stop, step) = self.e.b, bounds
        literal = op.step_value.value.data if op.step_value is not None else None
        before = b.block
        head, body, following = (b.append_basic_block(n) for n in ("for", "do", "next"))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(start, before)
        up, down = b.icmp_signed("<", i, stop), b.icmp_signed(">", i, stop)
        if literal is None:
            goes_on = b.select(b.icmp_signed(">", step, i64(0)), up, down)
        else:
            goes_on = up if literal > 0 else down
        b.cbranch(goes_on, body, after)
        b.position_at_end(body)
        self.values[op.body.block.args[0]] = i
        self.trip(op.body.block, following, after)
        b.position_at_end(following)
        flags = ("nsw",) if literal in (1, -1) else ()
        i.add_incoming(b.add(i, step, flags=flags), following)
        b.branch(head)

    def leave(self, op: Operation) -> None:
        self.e.b.branch(self.loops[-1][isinstance(op, py.BreakOp)])

    def fail(self, op: py.FailOp) -> None:
        self.e.fail(site_of(op))
        self.e.b.unreachable()

    def return_(self, op: py.ReturnOp) -> None:
        value, kind = self.values[op.value], py.type_of(op.value)
        if isinstance(self.result, Union):
            value = self.choice(value, kind)
        if self.op.recursive is not None:
            self.e.support("py_leave", VOID, [])
        self.e.b.ret(value)

    def choice(self, value: ir.Value, kind: Type) -> ir.Value:
        """A value as one of several types."""
        assert isinstance(self.result, Union)
        count = slots(self.result) - 1
        place = self.e.stack(count)
        store_value(self.e.b, value, place, kind)
        words = ir.Constant(ir.ArrayType(I64, count), ir.Undefined)
        for i in range(slots(kind)):
            word = self.e.b.load(address(self.e.b, place, i64(i), I64), typ=I64)
            words = self.e.b.insert_value(words, word, i)
        return struct(self.e.b, [i64(self.result.items.index(kind)), words])

    def map(self, op: py.MapOp) -> None:
        result = py.type_of(op.results_[0]) if op.results_ else None
        values, kinds = [self.values[v] for v in op.args_], [py.type_of(v) for v in op.args_]
        made = emit_map(self.e, values, kinds, result, site_of(op), self.element(op.body.block))
        if made is not None:
            self.values[op.results_[0]] = made

    def reduce(self, op: py.ReduceOp) -> None:
        block = op.body.block
        assert block.last_op is not None
        self.values[op.result] = emit_reduce(
            self.e, op.fn.data, [self.values[v] for v in op.args_],
            [py.type_of(v) for v in op.args_], py.type_of(block.last_op.operands[0]),
            py.type_of(op.result), site_of(op), self.element(block),
        )  # fmt: skip

    def element(self, block: Block) -> Any:
        """Emits the block of a map for elements."""

        def body(elements: list[ir.Value]) -> ir.Value:
            for argument, value in zip(block.args, elements, strict=True):
                self.values[argument] = value
            return self.yielded(block)[0]

        return body


def _literal(attr: Any) -> Any:
    """The number or text of an attribute."""
    return attr.data if hasattr(attr, "data") else attr.value.data


def _checked_variables(block: Block) -> set[str]:
    """Variables that may be read before they have a value."""
    found = set()
    for op in block.walk():
        if isinstance(op, py.GetOp) and op.site is not None:
            found.add(op.variable.data)
    return found


_EMITTERS: dict[type, Any] = {
    py.ConstantOp: FunctionEmitter.constant,
    py.ApplyOp: FunctionEmitter.apply,
    py.CallOp: FunctionEmitter.call,
    py.GetOp: FunctionEmitter.get,
    py.SetOp: FunctionEmitter.set,
    py.IfOp: FunctionEmitter.if_,
    py.WhileOp: FunctionEmitter.while_,
    py.ForOp: FunctionEmitter.for_,
    py.MapOp: FunctionEmitter.map,
    py.ReduceOp: FunctionEmitter.reduce,
    py.YieldOp: lambda emitter, op: None,
    py.ReturnOp: FunctionEmitter.return_,
    py.BreakOp: FunctionEmitter.leave,
    py.ContinueOp: FunctionEmitter.leave,
    py.FailOp: FunctionEmitter.fail,
}
