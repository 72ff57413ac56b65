"""Builtins over items: min, max, sum, any, all, and those that make containers."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

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
    Tensor,
    Tuple,
    Type,
    is_number,
)
from cuvil.jit_compiler.frontend import arithmetic, elements
from cuvil.jit_compiler.frontend.calls import builtin
from cuvil.jit_compiler.frontend.comparisons import values as compare_values
from cuvil.jit_compiler.frontend.displays import new_table, parts
from cuvil.jit_compiler.frontend.expressions import as_value, choose, expression, is_true, value_of
from cuvil.jit_compiler.frontend.iteration import (
    append,
    cursor_of,
    for_each,
    generate,
    new_list,
    when,
)
from cuvil.jit_compiler.frontend.methods import sort_list
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Range, Static, Val
from cuvil.jit_compiler.tensors import torch_module


@builtin("min", "max")
def _extreme(t: Translator, node: ast.Call) -> Expression:
    """The first of equal ones, as Python's."""
    fn = "lt" if ast.unparse(node.func) == "min" else "gt"
    if node.keywords:
        raise t.refusal(f"{ast.unparse(node.func)} with key or default")
    if len(node.args) > 1:
        found = value_of(t, node.args[0])
        for argument in node.args[1:]:
            found = _better(t, fn, found, value_of(t, argument))
        return found
    items = expression(t, node.args[0])
    if elements.is_array(t, items):
        raise t.refusal("min or max of an array: use numpy's")
    cursor = cursor_of(t, items)
    site = t.site("ValueError", f"{ast.unparse(node.func)}() iterable argument is empty")
    count = cursor.length()
    t.do("fail_if_zero", [count], site)
    best = t.temporary(cursor.get(t.literal(0)))
    span = Range(t.literal(1), count, t.literal(1))

    def take(i: Val) -> None:
        t.assign(best, _better(t, fn, t.read(best), cursor.get(i)))

    for_each(t, ("extreme", node.lineno, node.col_offset), span, take)
    return t.read(best)


def _better(t: Translator, fn: str, best: Val, other: Val) -> Val:
    test = is_true(t, compare_values(t, fn, other, best))
    if test.is_literal:
        return other if test.literal else best
    kind = t.join(best.kind, other.kind)
    if kind is None:
        raise t.refusal(f"{t.resolve(best.kind)} or {t.resolve(other.kind)} as one result")
    if is_number(kind) and kind != NUMBER:
        return t.apply("select", [test, t.convert(other, kind), t.convert(best, kind)], kind)
    return choose(t, test, other, best)


@builtin("sum")
def _sum(t: Translator, node: ast.Call) -> Expression:
    if node.keywords or len(node.args) > 2:
        raise t.refusal("this call of sum")
    start = value_of(t, node.args[1]) if len(node.args) == 2 else t.literal(0)
    total = t.temporary(Val(start.kind, start.ssa))

    def take(item: Val) -> None:
        t.assign(total, arithmetic.numbers(t, "add", t.read(total), _number(t, item)))

    each(t, node.args[0], take)
    return t.read(total)


def _number(t: Translator, value: Val) -> Val:
    if not is_number(t.resolve(value.kind)):
        raise t.refusal(f"a sum of {t.resolve(value.kind)}")
    return value


def each(t: Translator, node: ast.expr, take: Callable[[Val], None]) -> None:
    """Does something with every item; a generator expression makes no list."""
    if isinstance(node, ast.GeneratorExp):
        generate(t, node.generators, parts(t), lambda: take(value_of(t, node.elt)))
    else:
        for_each(t, ("each", node.lineno, node.col_offset), expression(t, node), take)


@builtin("any", "all")
def _any(t: Translator, node: ast.Call) -> Expression:
    is_any = ast.unparse(node.func) == "any"
    (argument,) = node.args
    found = t.temporary(t.literal(not is_any))

    def take(item: Val) -> None:
        test = is_true(t, item)
        hit = test if is_any else t.apply("bool.not", [test], BOOL)

        def stop() -> None:
            t.assign(found, t.literal(is_any))
            t.back_edge(*t.loops[-1])
            t.builder.break_()

        when(t, hit, stop)

    if isinstance(argument, ast.GeneratorExp) and len(argument.generators) > 1:
        raise t.refusal("any or all of several loops")
    each(t, argument, take)
    return t.read(found)


@builtin("list", "tuple")
def _list(t: Translator, node: ast.Call) -> Expression:
    if not node.args:
        made = new_list(t, ("list", node.lineno, node.col_offset))
        return made if ast.unparse(node.func) == "list" else t.tuple_of([])
    found = expression(t, node.args[0])
    if ast.unparse(node.func) == "tuple":
        if isinstance(found, Val) and isinstance(t.resolve(found.kind), Tuple):
            return found
        raise t.refusal("a tuple whose length only a run tells")
    return collect(t, found, node)


def collect(t: Translator, found: Expression, node: ast.expr) -> Val:
    """A new list of the items."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.GeneratorExp):
        return as_value(t, found)
    made = new_list(t, ("collect", node.lineno, node.col_offset))
    key = ("collect", node.lineno, node.col_offset)
    for_each(t, key, found, lambda item: append(t, made, item))
    return Val(t.resolve(made.kind), made.ssa)


@builtin("sorted")
def _sorted(t: Translator, node: ast.Call) -> Expression:
    found = expression(t, node.args[0])
    if isinstance(found, Val) and isinstance(t.resolve(found.kind), Set):
        raise t.refusal("sorted of a set")
    made = collect(t, found, node)
    return sort_list(t, made, node.keywords)


@builtin("dict")
def _dict(t: Translator, node: ast.Call) -> Expression:
    if node.keywords or len(node.args) > 1:
        raise t.refusal("this call of dict")
    if not node.args:
        return new_table(t, node)
    made = value_of(t, node.args[0])
    kind = t.resolve(made.kind)
    if not isinstance(kind, Dict):
        raise t.refusal(f"dict of {kind}")
    return t.apply("dict.copy", [made], kind)


@builtin("set")
def _set(t: Translator, node: ast.Call) -> Expression:
    inner = ast.Set([]) if not node.args else None
    if inner is not None:
        return expression(t, ast.copy_location(inner, node))
    item, name = node.args[0], ast.Name(".item", ast.Load())
    loop = ast.comprehension(ast.Name(".item", ast.Store()), item, [], 0)
    made = ast.SetComp(name, [loop])
    for part in ast.walk(made):
        if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return expression(t, ast.copy_location(made, node))


@builtin("isinstance")
def _isinstance(t: Translator, node: ast.Call) -> Expression:
    value, kinds = value_of(t, node.args[0]), expression(t, node.args[1])
    if not isinstance(kinds, Static):
        raise t.refusal("isinstance with several types")
    sample = _SAMPLES.get(type(t.resolve(value.kind)))
    kind = t.resolve(value.kind)
    python = _PLAIN_TYPES.get(kind) or sample
    if isinstance(kind, Tensor | Element):
        python = torch_module().Tensor
    elif isinstance(kind, Scalar):
        python = np.dtype(kind.dtype).type
    if python is None:
        raise t.refusal(f"isinstance of {kind}")
    return t.literal(issubclass(python, kinds.value))


_PLAIN_TYPES: dict[Type, type] = {
    INT: int, FLOAT: float, BOOL: bool, STR: str, NONE: type(None)
}  # fmt: skip
_SAMPLES: dict[type, type] = {
    List: list, Dict: dict, Tuple: tuple, Set: set, Array: np.ndarray
}  # fmt: skip
