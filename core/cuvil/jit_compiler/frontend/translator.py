"""One function and the types of its arguments to a `py.func`.

A pass walks the statements once and writes ops. What it learns about types behind a place that was
passed already (the back edge of a loop, items of a list that begins empty) is kept for the next
pass; the pass that learns nothing new is the result.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuvil.ir import py
from cuvil.ir.py_build import PyBuilder, function, value_block
from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    Array,
    Dict,
    Element,
    List,
    Scalar,
    Set,
    Size,
    Tensor,
    Tuple,
    Type,
    Union,
    Unknown,
    is_number,
)
from cuvil.jit_compiler.frontend.joins import holds, join_arrays, join_numbers
from cuvil.jit_compiler.frontend.program import Program
from cuvil.jit_compiler.frontend.source import Source, Unsupported
from cuvil.jit_compiler.frontend.values import Binding, Failure, Val
from cuvil.jit_compiler.tensors import is_tensor

Env = dict[str, Binding]
MAX_PASSES = 24
CONFLICT = Unknown("several types")


class Pending(Exception):
    """A type is not known yet."""


class Translator:
    """Translates one function."""

    def __init__(
        self, source: Source, kinds: Sequence[Type], program: Program, outside: dict[str, Type]
    ) -> None:
        self.source, self.kinds, self.program = source, tuple(kinds), program
        self.outside = outside
        self.cells: dict[object, Type] = {}
        self.heads: dict[tuple[object, str], Type] = {}
        self.results: list[Type] = []  # of this pass, and of the one before
        self.known_results: list[Type] = []
        self.changed = False
        self.pending: Unsupported | None = None
        self.recursive = False
        self.line = source.tree.lineno
        self.env: Env = {}
        self.loops: list[Any] = []
        self.leaving: dict[object, str] = {}  # what a break sets, of loops with an else
        self.builder = PyBuilder(value_block())
        self.renames: dict[str, str] = {}
        self.temporaries = 0

    # -- passes --------------------------------------------------------------------------------
    def run(self, name: str, statements: Callable[[Translator, list[ast.stmt]], None]) -> py.FuncOp:
        """The function, after as many passes as it takes."""
        for number in range(MAX_PASSES):
            self.changed, self.pending = False, None
            self.known_results, self.results = self.results, []
            block = self.one_pass(statements, number == 0)
            found = [self.resolve(k) for k in self.results]
            self.changed |= set(found) != {self.resolve(k) for k in self.known_results}
            if not self.changed:
                if self.pending is not None:
                    raise self.pending
                site = self.site("RecursionError", "maximum recursion depth exceeded")
                return function(name, block, self.result, site if self.recursive else None)
        raise self.refusal("types that do not settle")

    def one_pass(
        self, statements: Callable[[Translator, list[ast.stmt]], None], first: bool
    ) -> Any:
        self.env, self.loops, self.renames, self.temporaries = {}, [], {}, 0
        block = value_block([*self.kinds, *self.outside.values()])
        self.builder = PyBuilder(block)
        names = [*self.source.parameters, *self.outside]
        for parameter, argument, kind in zip(
            names, block.args, [*self.kinds, *self.outside.values()], strict=True
        ):
            self.assign(parameter, Val(kind, argument))
        statements(self, self.source.tree.body)
        if self.builder.is_ended:
            return block
        if first and self.recursive and self.pending is not None:
            self.changed = True  # perhaps not the end: a statement that waits for a type returns
        else:
            self.return_(self.none())
        return block

    @property
    def result(self) -> Type:
        """The type that the function returns."""
        kinds = [self.resolve(k) for k in self.results or self.known_results]
        if not kinds:
            return NONE  # it never returns
        distinct = list(dict.fromkeys(kinds))
        return distinct[0] if len(distinct) == 1 else Union(tuple(distinct))

    @property
    def result_so_far(self) -> Type:
        """What a call of the function itself gives, by what is known up to there."""
        self.results, kept = [*self.known_results, *self.results], self.results
        found = self.result
        self.results = kept
        return found

    def return_(self, value: Val) -> None:
        kind = self.resolve(value.kind)
        if isinstance(kind, Size):
            raise self.refusal("returning the shape of a tensor")
        for known in self.results:
            known = self.resolve(known)
            if known == kind or (known.code == kind.code and not isinstance(kind, Union)):
                value, kind = Val(known, value.ssa), known
        if kind not in [self.resolve(k) for k in self.results]:
            self.results.append(kind)
        if isinstance(kind, Union):
            raise self.refusal("returning what a callee returns in several types")
        if py.type_of(value.ssa) != kind:
            value = self.apply("retype", [value], kind)
        self.builder.return_(value.ssa)

    def program_value(self, name: str, found: object) -> Val | None:
        """An array, list or dict from outside: it is passed along as one more argument."""
        if not isinstance(found, np.ndarray | list | dict) and not is_tensor(found):
            return None
        key = f"@{name}"
        if key not in self.outside:
            self.outside[key] = self.program.outside_type(found, self)
            self.program.more[key] = found
            self.changed = True
            raise Pending(name)
        if self.program.more.get(key) is not found:
            raise self.refusal(f"two globals called '{name}' of several modules")
        return self.read(key)

    # -- messages ------------------------------------------------------------------------------
    def refusal(self, reason: str) -> Unsupported:
        """The error for what is left to the interpreter, at the current line."""
        return Unsupported(reason, self.line, self.source.file)

    def site(self, exception: str, message: str) -> int:
        """The number of a failure at the current line."""
        failure = Failure(exception, message, self.line, self.source.name, self.source.file)
        self.program.failures.append(failure)
        return len(self.program.failures) - 1

    # -- types ---------------------------------------------------------------------------------
    def resolve(self, kind: Type) -> Type:
        """A type with what is known by now of items that were unknown."""
        if isinstance(kind, Unknown):
            known = self.cells.get(kind.site)
            return kind if known is None else self.resolve(known)
        if isinstance(kind, List | Set):
            return type(kind)(self.resolve(kind.item))
        if isinstance(kind, Dict):
            return Dict(self.resolve(kind.key), self.resolve(kind.value))
        if isinstance(kind, Tuple):
            return type(kind)(tuple(map(self.resolve, kind.items)))
        return kind

    def learn(self, cell: Type, kind: Type) -> Type:
        """Items of an unknown or known type get one more; the type that holds all. Raises
        Unsupported where there is none."""
        kind, known = self.held(self.resolve(kind)), self.resolve(cell)
        joined = self.join(known, kind)
        if joined is None:
            raise self.refusal(f"items of types {known} and {kind} in one container")
        if joined != known and not self.set_cell(cell, joined):
            raise self.refusal(f"an item of type {kind} in a container of {known}")
        return joined

    def set_cell(self, cell: Type, kind: Type) -> bool:
        """Whether a type came from something unknown, which now is `kind`."""
        if not isinstance(cell, Unknown):
            return False
        site: object = cell.site
        while isinstance(self.cells.get(site), Unknown):
            site = self.cells[site].site  # type: ignore[attr-defined]
        if isinstance(kind, Unknown) and kind.site == site:
            return True
        self.cells[site] = kind
        self.changed = True
        return True

    def join(self, a: Type, b: Type) -> Type | None:
        """The type that holds values of both, None where there is none."""
        a, b = self.resolve(a), self.resolve(b)
        if a == b:
            return a
        if isinstance(a, Unknown):
            return b if self.set_cell(a, b) else None
        if isinstance(b, Unknown):
            return a if self.set_cell(b, a) else None
        if is_number(a) and is_number(b):
            return join_numbers(a, b)
        if isinstance(a, Array) and isinstance(b, Array):
            return join_arrays(a, b)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            array = join_arrays(a.array, b.array)
            return None if array is None else Tensor(array)
        if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
            items = [self.join(x, y) for x, y in zip(a.items, b.items, strict=True)]
            return None if None in items else Tuple(tuple(items))  # type: ignore[arg-type]
        return self.join_containers(a, b)

    def join_containers(self, a: Type, b: Type) -> Type | None:
        """Containers that differ in what is not known yet."""
        if type(a) is not type(b) or not isinstance(a, List | Set | Dict):
            return None
        fields = ("key", "value") if isinstance(a, Dict) else ("item",)
        parts = []
        for name in fields:
            x, y = self.resolve(getattr(a, name)), self.resolve(getattr(b, name))
            same = x == y or isinstance(x, Unknown) or isinstance(y, Unknown)
            part = self.join(x, y) if same or isinstance(x, List | Set | Dict) else None
            if part is None:
                return None
            parts.append(part)
        return type(a)(*parts)

    def convert(self, value: Val, kind: Type) -> Val:
        """A value as one of a type that `join` gave."""
        source, kind = self.resolve(value.kind), self.resolve(kind)
        if source == kind or source.code == kind.code:
            return Val(kind, value.ssa, value.literal)
        if kind == FLOAT:
            return self.to_float(value)
        if kind == INT and source == BOOL:
            return self.apply("int.of_bool", [value], INT)
        if kind == NUMBER and source in (INT, FLOAT):
            site = self.site("OverflowError", "an int beyond 2**53 where a float may be")
            return self.apply("number.of", [value], NUMBER, site)
        if isinstance(kind, Scalar) and is_number(source):
            if value.is_literal and holds(kind, value.literal):
                return Val(kind, self.builder.constant(value.literal, kind), value.literal)
            if source == INT and kind.dtype not in "lfd?":
                site = self.site("OverflowError", f"an int that {kind} does not hold")
                return self.apply("scalar.checked", [value], kind, site)
            return self.apply("scalar.cast", [value], kind)
        if isinstance(kind, Tuple) and isinstance(source, Tuple):
            items = [self.convert(self.item(value, i), t) for i, t in enumerate(kind.items)]
            return self.tuple_of(items)
        if isinstance(kind, Array | Tensor | List | Set | Dict) and isinstance(source, type(kind)):
            return Val(kind, value.ssa)
        raise self.refusal(f"a value of type {source} where {kind} is")

    def to_float(self, value: Val) -> Val:
        """A Python number as a float."""
        kind = self.resolve(value.kind)
        if kind == FLOAT:
            return value
        if kind == NUMBER:
            return self.apply("number.float", [value], FLOAT)
        if kind == BOOL:
            value, kind = self.apply("int.of_bool", [value], INT), INT
        if kind == INT:
            if value.is_literal:
                return self.literal(float(value.literal))
            return self.apply("float.of_int", [value], FLOAT)
        if isinstance(kind, Scalar):
            return self.apply("scalar.cast", [value], FLOAT)
        raise self.refusal(f"{kind} as a float")

    # -- values --------------------------------------------------------------------------------
    def literal(self, value: Any) -> Val:
        """A literal bool, int, float, str, None or tuple of them."""
        if isinstance(value, tuple):
            made = self.tuple_of([self.literal(v) for v in value])
            return Val(made.kind, made.ssa, value)
        kinds: dict[type, Type] = {
            bool: BOOL, int: INT, float: FLOAT, type(None): NONE, str: STR
        }  # fmt: skip
        kind = kinds.get(type(value))
        if kind is None:
            raise self.refusal(f"a constant of type {type(value).__name__}")
        if kind == INT and not -(1 << 63) <= value < 1 << 63:
            raise self.refusal("an int beyond 64 bits")
        return Val(kind, self.builder.constant(value, kind), value)

    def none(self) -> Val:
        return self.literal(None)

    def apply(
        self,
        fn: str,
        args: Iterable[Val],
        kind: Type,
        site: int | None = None,
        params: Sequence[int | str] = (),
    ) -> Val:
        """A function of the table on values."""
        return Val(kind, self.builder.apply(fn, [a.ssa for a in args], kind, site, params))

    def do(
        self, fn: str, args: Iterable[Val], site: int | None = None,
        params: Sequence[int | str] = (),
    ) -> None:  # fmt: skip
        """A function without a result."""
        self.builder.run(fn, [a.ssa for a in args], (), site, params)

    def tuple_of(self, items: Sequence[Val]) -> Val:
        return self.apply("tuple.of", items, Tuple(tuple(self.held(i.kind) for i in items)))

    def held(self, kind: Type) -> Type:
        """The type of a value that gets a name, or a place in a container."""
        if not isinstance(kind, Element):
            return kind
        if not kind.fresh:
            text = "a function that writes tensors, and gives an element a name: use .item()"
            self.program.holder = self.program.holder or self.refusal(text)
        return replace(kind, fresh=False)

    def item(self, value: Val, index: int) -> Val:
        """A member of a tuple."""
        kind = self.resolve(value.kind)
        assert isinstance(kind, Tuple)
        if isinstance(value.literal, tuple):
            return self.literal(value.literal[index])
        return self.apply("tuple.get", [value], kind.items[index], None, [index])

    # -- variables -----------------------------------------------------------------------------
    def slot(self, name: str, kind: Type) -> str:
        return f"{name}:{self.resolve(kind).code}"

    def assign(self, name: str, value: Val, owned: bool = False) -> None:
        kind = self.held(self.resolve(value.kind))
        self.builder.set(self.slot(name, kind), value.ssa)
        self.env[name] = Binding(kind, owned=owned)

    def read(self, name: str) -> Val:
        binding = self.env[name]
        site = None
        if binding.maybe:
            text = f"cannot access local variable '{name}' where it is not associated with a value"
            site = self.site("UnboundLocalError", text)
        kind = self.resolve(binding.kind)
        return Val(kind, self.builder.get(self.slot(name, kind), kind, site))

    def temporary(self, value: Val) -> str:
        """A new variable for a value that later blocks read."""
        self.temporaries += 1
        name = f".{self.temporaries}"
        self.assign(name, value)
        return name

    def merge(self, ends: Sequence[tuple[PyBuilder, Env]]) -> Env:
        """The variables behind branches, whose builders convert what has other types there."""
        merged: Env = {}
        for name in dict.fromkeys(n for _, env in ends for n in env):
            found = [env.get(name) for _, env in ends]
            kinds = [b.kind for b in found if b is not None]
            kind: Type | None = kinds[0]
            for other in kinds[1:]:
                kind = None if kind is None else self.join(kind, other)
            if kind is None:
                continue  # of several types: it has no value behind
            maybe = any(b is None or b.maybe for b in found)
            owned = all(b is not None and b.owned for b in found)
            merged[name] = Binding(kind, maybe, owned)
        for builder, env in ends:
            self.adapt(builder, env, merged)
        return merged

    def adapt(self, builder: PyBuilder, env: Env, target: Env) -> None:
        """At the end of a block: variables get the types that they have behind it."""
        outer, self.builder = self.builder, builder
        for name, binding in target.items():
            mine = env.get(name)
            if mine is None or self.slot(name, mine.kind) == self.slot(name, binding.kind):
                continue
            site = self.site("UnboundLocalError", name) if mine.maybe else None
            kind = self.resolve(mine.kind)
            value = Val(kind, self.builder.get(self.slot(name, kind), kind, site))
            changed = self.convert(value, binding.kind)
            self.builder.set(self.slot(name, binding.kind), changed.ssa)
        self.builder = outer

    def known_head(self, key: object) -> Env:
        """The variables at the head of a loop, in types that also hold what comes back."""
        head: Env = {}
        for name, binding in self.env.items():
            later = self.heads.get((key, name))
            kind = binding.kind if later is None else self.join(binding.kind, later)
            if kind is not None:
                head[name] = Binding(kind, binding.maybe, binding.owned)
        self.adapt(self.builder, self.env, head)
        for (loop, name), kind in self.heads.items():
            if loop == key and name not in self.env and kind != CONFLICT:
                head[name] = Binding(kind, maybe=True)
        return head

    def back_edge(self, key: object, head: Env) -> None:
        """The current block goes back to a loop's head, or leaves the loop: variables get the types
        that they have there; what does not fit is learnt for the next pass."""
        for name, mine in self.env.items():
            self.learn_head(key, name, mine.kind, head.get(name))
        target = {
            n: b for n, b in head.items()
            if n in self.env and self.join(self.env[n].kind, b.kind) == self.resolve(b.kind)
        }  # fmt: skip
        self.adapt(self.builder, self.env, target)

    def learn_head(self, key: object, name: str, kind: Type, binding: Binding | None) -> None:
        known = self.heads.get((key, name))
        before = known if binding is None else binding.kind
        joined = kind if before is None else self.join(before, kind)
        if joined is None and binding is not None and not binding.maybe:
            raise self.refusal(f"'{name}' is {binding.kind} before the loop and {kind} in it")
        joined = CONFLICT if joined is None or known == CONFLICT else joined
        if joined != known and joined != before:
            self.heads[key, name] = joined
            self.changed = True
