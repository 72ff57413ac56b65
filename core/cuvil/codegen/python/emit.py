"""What rows of the table write code with, and the table of `py.apply`'s functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from cuvil.codegen.llvm_util import I8, I64, PTR, VOID, declare, i64, stack_array
from cuvil.codegen.python.values import load_value, slots, store_value
from cuvil.ir.py_types import Type

UNLIKELY = (1, 1_000_000)


@dataclass(frozen=True)
class Applied:
    """A `py.apply`: types of operands and results, the failure's site, parameters, and operands
    that are known to be in range (see `loops`)."""

    fn: str
    kinds: tuple[Type, ...]
    results: tuple[Type, ...]
    site: int = 0
    params: tuple[Any, ...] = ()
    safe: frozenset[int] = frozenset()


Row = Callable[["Emit", Applied, list[ir.Value]], Any]
FUNCTIONS: dict[str, Row] = {}


def function(*names: str) -> Callable[[Row], Row]:
    """Registers the code of functions: (emit, applied, operands) -> value, tuple, or None."""

    def register(row: Row) -> Row:
        for name in names:
            if name in FUNCTIONS:
                raise ValueError(f"two rows for {name}")
            FUNCTIONS[name] = row
        return row

    return register


@dataclass
class Emit:
    """Writes one LLVM function. context: the runtime's, as an address. text: of str literals.

    lost: a place where failures are noted while the code goes on, instead of leaving; guards: what
    must hold for them to be some.
    """

    b: ir.IRBuilder
    context: ir.Value
    facts: Any = None
    texts: dict[bytes, ir.GlobalVariable] = field(default_factory=dict)
    lost: ir.Value | None = None
    guards: list[ir.Value] = field(default_factory=list)

    @property
    def module(self) -> ir.Module:
        return self.b.module

    def apply(
        self,
        fn: str,
        kinds: Sequence[Type],
        results: Sequence[Type],
        args: Sequence[ir.Value],
        site: int = 0,
        params: Sequence[Any] = (),
        safe: frozenset[int] = frozenset(),
    ) -> Any:
        """Code for a function of the table."""
        done = Applied(fn, tuple(kinds), tuple(results), site, tuple(params), safe)
        return FUNCTIONS[fn](self, done, list(args))

    def call(self, name: str, result: ir.Type, args: Sequence[ir.Value]) -> ir.Value:
        """Calls a function of the runtime's."""
        callee = declare(self.module, name, result, [a.type for a in args])
        return self.b.call(callee, args)

    def call_reading(self, name: str, result: ir.Type, args: Sequence[ir.Value]) -> ir.Value:
        """Calls a function that returns and only reads memory."""
        callee = declare(self.module, name, result, [a.type for a in args])
        for attribute in ("memory(read)", "nounwind", "willreturn"):
            set.add(callee.attributes, attribute)  # FunctionAttributes.add refuses the first
        return self.b.call(callee, args)

    def support(self, name: str, result: ir.Type, args: Sequence[ir.Value]) -> ir.Value:
        """Calls a function of the runtime's that takes the context first."""
        return self.call(name, result, [self.context, *args])

    def test(self, name: str, args: Sequence[ir.Value]) -> ir.Value:
        """Calls a function of the runtime's that returns a C++ bool."""
        return self.b.trunc(self.call(name, I8, args), ir.IntType(1))

    def intrinsic(self, name: str, args: Sequence[ir.Value]) -> ir.Value:
        """LLVM's intrinsic on operands of one type."""
        kind = args[0].type
        full = f"llvm.{name}.{kind.intrinsic_name}"
        return self.b.call(declare(self.module, full, kind, [kind] * len(args)), args)

    def fail_if(self, condition: ir.Value, site: int) -> None:
        """Leaves the function with a failure where the condition holds."""
        if self.lost is not None:
            for guard in self.guards:
                condition = self.b.and_(condition, guard)
            before = self.b.load(self.lost, typ=condition.type)
            self.b.store(self.b.or_(before, condition), self.lost)
            return
        with self.unlikely(condition):
            self.fail(site)
            self.b.unreachable()

    def fail(self, site: int) -> None:
        """Calls the way out; the block is to end behind it."""
        callee = declare(self.module, "py_fail", VOID, [PTR, I64])
        callee.attributes.add("noreturn")
        callee.attributes.add("cold")
        callee.attributes.add("nounwind")
        self.b.call(callee, [self.context, i64(site)])

    @contextmanager
    def unlikely(self, condition: ir.Value) -> Iterator[None]:
        """A branch that is seldom taken; its code may end in a terminator. No branch, and so only
        for code that may run always, where failures are noted."""
        if self.lost is not None:
            self.guards.append(condition)
            yield
            self.guards.pop()
            return
        rare = self.b.append_basic_block("rare")
        after = self.b.append_basic_block("on")
        self.b.cbranch(condition, rare, after).set_weights(UNLIKELY)
        self.b.position_at_end(rare)
        yield
        if not self.b.block.is_terminated:
            self.b.branch(after)
        self.b.position_at_end(after)

    def stack(self, count: int) -> ir.Value:
        """Slots on the stack, allocated once per call of the function."""
        entry = self.b.function.entry_basic_block
        with self.b.goto_block(entry):
            self.b.position_at_start(entry)
            return stack_array(self.b, I64, max(count, 1))

    def variable(self, kind: ir.Type) -> ir.Value:
        """A stack place of one LLVM value."""
        entry = self.b.function.entry_basic_block
        with self.b.goto_block(entry):
            self.b.position_at_start(entry)
            place = self.b.alloca(kind)
            place.type = PTR
            return place

    def spill(self, value: ir.Value, kind: Type) -> ir.Value:
        """The address of slots that hold a value."""
        place = self.stack(slots(kind))
        store_value(self.b, value, place, kind)
        return place

    def reload(self, place: ir.Value, kind: Type) -> ir.Value:
        """The value in slots."""
        return load_value(self.b, place, kind)

    def text(self, data: bytes) -> ir.Value:
        """The address of bytes that are part of the code."""
        if data not in self.texts:
            kind = ir.ArrayType(I8, len(data))
            made = ir.GlobalVariable(self.module, kind, f"text.{len(self.texts)}")
            made.initializer = ir.Constant(kind, bytearray(data))
            made.global_constant = True
            made.linkage = "internal"
            self.texts[data] = made
        found = self.texts[data]
        place = self.b.gep(found, [i64(0)], source_etype=I8)
        place.type = PTR  # llvmlite still types what it points to
        return place
