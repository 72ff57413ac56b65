"""Loops over what can be iterated, and comprehensions, which are loops."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import BOOL, INT, STR, Array, Dict, List, Set, Tensor, Tuple, Type, Unknown
from cuvil.jit_compiler.frontend import tensors
from cuvil.jit_compiler.frontend.translator import Pending, Translator
from cuvil.jit_compiler.frontend.values import Expression, Leaf, Node, Range, Val, Walk

Body = Callable[[Val], None]


@dataclass(frozen=True)
class Cursor:
    """Something with a length and items by index. grows: its length may change meanwhile."""

    length: Callable[[], Val]
    get: Callable[[Val], Val]
    grows: bool = False


def cursor_of(t: Translator, value: Expression) -> Cursor:
    """How to iterate over an expression."""
    if isinstance(value, Range):
        return _range_cursor(t, value)
    if isinstance(value, Walk):
        return _walk_cursor(t, value)
    if isinstance(value, Node | Leaf):
        raise t.refusal("iterating over an expression of arrays: assign it first")
    if not isinstance(value, Val):
        raise t.refusal("iterating over this")
    kind = t.resolve(value.kind)
    if isinstance(kind, List):
        item = kind.item
        return Cursor(
            lambda: t.apply("list.len", [value], INT),
            lambda i: t.apply("list.at", [value, i], item),
            grows=True,
        )
    if isinstance(kind, Array):
        return _array_cursor(t, value, kind)
    if isinstance(kind, Tensor):
        inner = _array_cursor(t, tensors.as_array(value, kind), kind.array)
        return Cursor(inner.length, lambda i: tensors.as_tensor(t, inner.get(i)))
    if kind == STR:
        site = t.site("IndexError", "string index out of range")
        return Cursor(
            lambda: t.apply("str.len", [value], INT),
            lambda i: t.apply("str.index", [value, i], STR, site),
        )
    if isinstance(kind, Tuple):
        return cursor_of(t, list_of_tuple(t, value, kind))
    if isinstance(kind, Dict):
        return _walk_cursor(t, Walk("keys", (value,)))
    if isinstance(kind, Set):
        raise t.refusal("iterating over a set, whose order is Python's own")
    raise t.refusal(f"iterating over {kind}")


def list_of_tuple(t: Translator, value: Val, kind: Tuple) -> Val:
    """A tuple of items that have a common type as a list."""
    joined: Type | None = kind.items[0] if kind.items else INT
    for item in kind.items[1:]:
        joined = None if joined is None else t.join(joined, item)
    if joined is None:
        raise t.refusal(f"iterating over {kind}")
    items = [t.convert(t.item(value, i), joined) for i in range(len(kind.items))]
    return t.apply("list.of", items, List(joined))


def _array_cursor(t: Translator, value: Val, kind: Array) -> Cursor:
    site = t.site("IndexError", "index out of bounds")

    def get(i: Val) -> Val:
        if kind.rank == 1:
            return t.apply("array.get", [value, i], kind.element, site)
        part = Array(kind.dtype, kind.rank - 1, kind.contiguous, kind.writable, kind.fresh)
        return t.apply("array.part", [value, i], part, site)

    return Cursor(lambda: t.apply("array.extent", [value], INT, None, [0]), get)


def _range_cursor(t: Translator, value: Range) -> Cursor:
    site = t.site("OverflowError", "a range beyond 64 bits")
    zero = t.site("ValueError", "range() arg 3 must not be zero")
    parts = [value.start, value.stop, value.step]

    def get(i: Val) -> Val:
        offset = t.apply("int.mul", [i, value.step], INT, site)
        return t.apply("int.add", [value.start, offset], INT, site)

    return Cursor(lambda: t.apply("int.range_length", parts, INT, zero), get)


def _walk_cursor(t: Translator, walk: Walk) -> Cursor:
    if walk.how in ("keys", "values", "items"):
        return _dict_cursor(t, walk.how, walk.parts[0])
    inner = [cursor_of(t, part) for part in walk.parts]
    overflow = t.site("OverflowError", "a count beyond 64 bits")
    if walk.how == "enumerate":
        start = walk.start or t.literal(0)

        def numbered(i: Val) -> Val:
            return t.tuple_of([t.apply("int.add", [i, start], INT, overflow), inner[0].get(i)])

        return Cursor(inner[0].length, numbered, inner[0].grows)
    if walk.how == "reversed":
        length = inner[0].length()
        last = t.apply("int.sub", [length, t.literal(1)], INT, overflow)
        if inner[0].grows:
            inner = [_checked(t, walk.parts[0], inner[0])]
        return Cursor(
            lambda: length,
            lambda i: inner[0].get(t.apply("int.sub", [last, i], INT, overflow)),
        )

    def shortest() -> Val:
        found = inner[0].length()
        for other in inner[1:]:
            length = other.length()
            less = t.apply("int.lt", [length, found], BOOL)
            found = t.apply("select", [less, length, found], INT)
        return found

    return Cursor(
        shortest,
        lambda i: t.tuple_of([c.get(i) for c in inner]),
        any(c.grows for c in inner),
    )


def _checked(t: Translator, items: Expression, cursor: Cursor) -> Cursor:
    """A list from its end: it may get shorter meanwhile."""
    if not isinstance(items, Val):
        return cursor
    kind, site = t.resolve(items.kind), t.site("IndexError", "a list that gets shorter")
    assert isinstance(kind, List)
    item = kind.item
    return Cursor(cursor.length, lambda i: t.apply("list.get", [items, i], item, site))


def _dict_cursor(t: Translator, how: str, table: Val) -> Cursor:
    kind = t.resolve(table.kind)
    assert isinstance(kind, Dict)
    key, value = kind.key, kind.value
    t.do("dict.compact", [table])
    size = t.apply("dict.len", [table], INT)
    site = t.site("RuntimeError", "dictionary changed size during iteration")

    def get(i: Val) -> Val:
        now = t.apply("dict.filled", [table], INT)
        t.do("fail_if", [t.apply("int.ne", [now, size], BOOL)], site)
        parts = []
        if how != "values":
            parts.append(t.apply("dict.key", [table, i], key))
        if how != "keys":
            parts.append(t.apply("dict.value", [table, i], value))
        return parts[0] if len(parts) == 1 else t.tuple_of(parts)

    return Cursor(lambda: size, get)


def for_each(t: Translator, key: object, iterable: Expression, body: Body) -> None:
    """A loop; `body` translates one trip for an item."""
    if isinstance(iterable, Range):
        literal = iterable.step.literal if iterable.step.is_literal else None
        if literal is None or literal == 0:
            site = t.site("ValueError", "range() arg 3 must not be zero")
            t.do("fail_if_zero", [iterable.step], site)
        _counted(t, key, iterable, literal, body)
        return
    cursor = cursor_of(t, iterable)
    if cursor.grows:
        _growing(t, key, cursor, body)
        return
    span = Range(t.literal(0), cursor.length(), t.literal(1))
    _counted(t, key, span, 1, lambda i: body(cursor.get(i)))


def _counted(t: Translator, key: object, span: Range, literal: int | None, body: Body) -> None:
    outer, block = t.builder, value_block([INT])
    head = t.known_head(key)
    t.builder, t.env = PyBuilder(block), dict(head)
    _trip(t, key, head, lambda: body(Val(INT, block.args[0])))
    t.builder, t.env = outer, head
    t.builder.for_([v.ssa for v in (span.start, span.stop, span.step)], block, literal)


def _trip(t: Translator, key: object, head: Any, body: Callable[[], None]) -> None:
    t.loops.append((key, head))
    body()
    if not t.builder.is_ended:
        t.back_edge(key, head)
    t.loops.pop()


def _counter(t: Translator) -> str:
    """A variable of compiled code's that counts from 0."""
    t.temporaries += 1
    counter = f".i{t.temporaries}:i"
    t.builder.set(counter, t.literal(0).ssa)
    return counter


def _next(t: Translator, counter: str) -> Val:
    """The count, which then is one more."""
    i = Val(INT, t.builder.get(counter, INT))
    t.builder.set(counter, t.apply("int.next", [i], INT).ssa)
    return i


def _growing(t: Translator, key: object, cursor: Cursor, body: Body) -> None:
    """The length is asked for before every trip."""
    outer, test, block = t.builder, value_block(), value_block()
    head = t.known_head(key)
    counter = _counter(t)
    t.builder, t.env = PyBuilder(test), dict(head)
    i = Val(INT, t.builder.get(counter, INT))
    t.builder.yield_([t.apply("int.lt", [i, cursor.length()], BOOL).ssa])
    t.builder = PyBuilder(block)
    i = _next(t, counter)
    _trip(t, key, head, lambda: body(cursor.get(i)))
    t.builder, t.env = outer, head
    t.builder.while_(test, block)


Evaluate = Callable[[ast.expr], Expression]


def generate(
    t: Translator,
    generators: list[ast.comprehension],
    parts: tuple[Evaluate, Callable[[ast.expr], Val], Callable[[ast.expr, Val], None]],
    body: Callable[[], None],
) -> None:
    """The loops of a comprehension around what it does with each item.

    parts: how to evaluate, test and assign. Its variables are its own.
    """
    saved = dict(t.renames)
    _generate(t, generators, parts, body)
    t.renames = saved


def _generate(t: Translator, generators: list[ast.comprehension], parts: Any, body: Any) -> None:
    evaluate, test, assign = parts
    first, rest = generators[0], generators[1:]
    place = (first.target.lineno, first.target.col_offset)
    key, iterable = ("comprehension", place), evaluate(first.iter)
    names = {n.id for n in ast.walk(first.target) if isinstance(n, ast.Name)}
    t.renames = {**t.renames, **{n: f"{n}.{place[0]}.{place[1]}" for n in names}}

    def trip(item: Val) -> None:
        assign(first.target, item)
        checks = list(first.ifs)

        def guarded() -> None:
            if checks:
                when(t, test(checks.pop(0)), guarded)
            elif rest:
                _generate(t, rest, parts, body)
            else:
                body()

        guarded()

    for_each(t, key, iterable, trip)


def when(t: Translator, test: Val, body: Callable[[], None]) -> None:
    """A block that runs where the test holds."""
    before, outer = dict(t.env), t.builder
    block, other = value_block(), value_block()
    t.builder = PyBuilder(block)
    body()
    ends = [(PyBuilder(other), before)]
    if not t.builder.is_ended:
        ends.append((t.builder, t.env))
    t.builder = outer
    t.env = t.merge(ends)
    outer.if_(test.ssa, block, other)


def new_list(t: Translator, site: object, room: Val | None = None) -> Val:
    """An empty list whose items show their type later."""
    item = t.resolve(Unknown(site))
    return t.apply("list.reserve", [room or t.literal(0)], List(item))


def _as_item(t: Translator, made: Val, item: Val) -> tuple[Val, Val]:
    """A list that takes an item, and the item as it takes it."""
    kind = t.resolve(made.kind)
    assert isinstance(kind, List)
    joined = t.learn(kind.item, item.kind)
    return Val(List(joined), made.ssa), t.convert(item, joined)


def append(t: Translator, made: Val, item: Val) -> None:
    """Puts an item at the end of a list."""
    t.do("list.append", list(_as_item(t, made, item)))


def list_of_items(
    t: Translator, site: object, loops: Callable[[Callable[[Val], None]], None]
) -> Val:
    """The list of what `loops` calls its argument for."""
    made = new_list(t, site)
    counter = _counter(t)

    def put(item: Val) -> None:
        taker, converted = _as_item(t, made, item)
        t.do("list.put", [taker, _next(t, counter), converted])

    loops(put)
    whole = Val(t.resolve(made.kind), made.ssa)
    t.do("list.close", [whole, Val(INT, t.builder.get(counter, INT))])
    return whole


def known(t: Translator, kind: Type) -> Type:
    """A type that is known; Pending where it is not yet."""
    found = t.resolve(kind)
    if isinstance(found, Unknown):
        raise Pending("a type that nothing shows")
    return found
