"""Displays of containers, comprehensions, and strings that are put together."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from cuvil.ir.py_types import INT, STR, Dict, List, Set, Tuple, Type, Unknown, can_hash, is_number
from cuvil.jit_compiler.frontend.expressions import (
    HANDLERS,
    as_value,
    call_python,
    condition,
    expression,
    handler,
    value_of,
)
from cuvil.jit_compiler.frontend.iteration import generate, list_of_items
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Val


@handler(ast.Tuple)
def _tuple(t: Translator, node: ast.Tuple) -> Expression:
    items = [value_of(t, n) for n in node.elts]
    made = t.tuple_of(items)
    if items and all(i.is_literal for i in items):
        return Val(made.kind, made.ssa, tuple(i.literal for i in items))
    return made


@handler(ast.List)
def _list(t: Translator, node: ast.List) -> Expression:
    if any(isinstance(n, ast.Starred) for n in node.elts):
        raise t.refusal("* in a list")
    items = [value_of(t, n) for n in node.elts]
    site = ("list", node.lineno, node.col_offset)
    item: Type = t.resolve(Unknown(site))
    for value in items:
        item = t.learn(Unknown(site) if isinstance(item, Unknown) else item, value.kind) \
            if t.join(item, value.kind) != item else item  # fmt: skip
    return t.apply("list.of", [t.convert(v, item) for v in items], List(item))


@handler(ast.ListComp)
def _list_comprehension(t: Translator, node: ast.ListComp | ast.GeneratorExp) -> Expression:
    def loops(put: Callable[[Val], None]) -> None:
        generate(t, node.generators, parts(t), lambda: put(value_of(t, node.elt)))

    return list_of_items(t, ("list", node.lineno, node.col_offset), loops)


HANDLERS[ast.GeneratorExp] = _list_comprehension


def parts(t: Translator) -> Any:
    """What `generate` needs of this module."""

    def assign(target: ast.expr, value: Val) -> None:
        if isinstance(target, ast.Name):
            t.assign(t.renames.get(target.id, target.id), value)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(t.resolve(value.kind), Tuple):
            for i, part in enumerate(target.elts):
                assign(part, t.item(value, i))
        else:
            raise t.refusal(f"{ast.unparse(target)} as a target in a comprehension")

    return (lambda n: expression(t, n)), (lambda n: condition(t, n)), assign


@handler(ast.Dict)
def _dict(t: Translator, node: ast.Dict) -> Expression:
    made = new_table(t, node)
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise t.refusal("** in a dict")
        put(t, made, value_of(t, key), value_of(t, value))
    return Val(t.resolve(made.kind), made.ssa)


@handler(ast.DictComp)
def _dict_comprehension(t: Translator, node: ast.DictComp) -> Expression:
    made = new_table(t, node)
    generate(
        t, node.generators, parts(t),
        lambda: put(t, made, value_of(t, node.key), value_of(t, node.value)),
    )  # fmt: skip
    return Val(t.resolve(made.kind), made.ssa)


def new_table(t: Translator, node: ast.expr) -> Val:
    """An empty dict whose keys and values show their types later."""
    place = (node.lineno, node.col_offset)
    kind = Dict(t.resolve(Unknown(("key", place))), t.resolve(Unknown(("value", place))))
    return t.apply("dict.new", [], kind)


def put(t: Translator, table: Val, key: Val, value: Val) -> None:
    """table[key] = value"""
    kind = t.resolve(table.kind)
    assert isinstance(kind, Dict)
    joined = Dict(learn_key(t, kind.key, key), t.learn(kind.value, value.kind))
    held = Val(joined, table.ssa)
    t.do("dict.put", [held, t.convert(key, joined.key), t.convert(value, joined.value)])


def learn_key(t: Translator, cell: Type, key: Val) -> Type:
    """The type of keys with one more; only int, bool, str and tuples of them are hashed here."""
    found = t.learn(cell, key.kind)
    if not isinstance(found, Unknown) and not can_hash(found):
        raise t.refusal(f"keys of type {found}")
    return found


@handler(ast.Set, ast.SetComp)
def _set(t: Translator, node: ast.Set | ast.SetComp) -> Expression:
    item = t.resolve(Unknown(("set", node.lineno, node.col_offset)))
    made = t.apply("set.new", [], Set(item))

    def add(part: ast.expr) -> None:
        add_item(t, made, value_of(t, part))

    if isinstance(node, ast.SetComp):
        generate(t, node.generators, parts(t), lambda: add(node.elt))
    else:
        for part in node.elts:
            add(part)
    return Val(t.resolve(made.kind), made.ssa)


def add_item(t: Translator, made: Val, item: Val) -> None:
    """made.add(item)"""
    kind = t.resolve(made.kind)
    assert isinstance(kind, Set)
    joined = learn_key(t, kind.item, item)
    t.do("set.put", [Val(Set(joined), made.ssa), t.convert(item, joined)])


@handler(ast.JoinedStr)
def _format(t: Translator, node: ast.JoinedStr) -> Expression:
    """An f-string: ints and strings here, the rest by Python's own `format`."""
    made: Val | None = None
    for part in node.values:
        if isinstance(part, ast.Constant):
            text = t.literal(part.value)
        else:
            assert isinstance(part, ast.FormattedValue)
            text = _formatted(t, part)
        made = text if made is None else t.apply("str.concat", [made, text], STR)
    return t.literal("") if made is None else made


def _formatted(t: Translator, node: ast.FormattedValue) -> Val:
    if node.conversion != -1:
        raise t.refusal("a conversion in an f-string")
    value, spec = value_of(t, node.value), t.literal("")
    if node.format_spec is not None:
        spec = as_value(t, _format(t, node.format_spec))
    kind = t.resolve(value.kind)
    if spec.literal == "" and kind == STR:
        return value
    if spec.literal == "" and kind == INT:
        return t.apply("str.of_int", [value], STR)
    if not (is_number(kind) or kind == STR):
        raise t.refusal(f"{kind} in an f-string")
    return call_python(t, format, None, [value, spec], STR)
