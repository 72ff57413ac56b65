"""Comparisons: chains, identity, membership, order of strings, tuples and lists."""

from __future__ import annotations

import ast

from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    Array,
    Dict,
    List,
    Scalar,
    Set,
    Tuple,
    Type,
    is_number,
)
from cuvil.jit_compiler.frontend import arithmetic, elements
from cuvil.jit_compiler.frontend.displays import learn_key
from cuvil.jit_compiler.frontend.expressions import (
    OPERATORS,
    as_value,
    expression,
    handler,
    is_true,
)
from cuvil.jit_compiler.frontend.iteration import for_each
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Range, Static, Val


@handler(ast.Compare)
def _compare(t: Translator, node: ast.Compare) -> Expression:
    left = expression(t, node.left)
    if len(node.ops) == 1:
        return compare(t, node.ops[0], left, expression(t, node.comparators[0]))
    left = as_value(t, left)
    return _link(t, node.ops, left, node.comparators)


def _link(t: Translator, ops: list[ast.cmpop], left: Val, rest: list[ast.expr]) -> Val:
    """`a < b < c`: what is right of a comparison that fails is not computed."""
    right = as_value(t, expression(t, rest[0]))
    first = as_value(t, compare(t, ops[0], left, right))
    if len(ops) == 1:
        return first
    test = is_true(t, first)
    if test.is_literal:
        return _link(t, ops[1:], right, rest[1:]) if test.literal else first
    outer, before = t.builder, dict(t.env)
    t.builder = inner = PyBuilder(value_block())
    second = _link(t, ops[1:], right, rest[1:])
    kind = t.join(first.kind, second.kind)
    if kind is None:
        raise t.refusal("a chain of comparisons of several types")
    inner.yield_([t.convert(second, kind).ssa])
    t.builder = other = PyBuilder(value_block())
    other.yield_([t.convert(first, kind).ssa])
    t.builder, t.env = outer, before
    return Val(kind, outer.if_(test.ssa, inner.block, other.block, [kind])[0])


def compare(t: Translator, op: ast.cmpop, left: Expression, right: Expression) -> Expression:
    """One comparison."""
    if isinstance(op, ast.Is | ast.IsNot):
        return _identity(t, left, right, isinstance(op, ast.IsNot))
    if isinstance(op, ast.In | ast.NotIn):
        if isinstance(right, Range):
            found = _in_range(t, right, as_value(t, left))
        else:
            found = contains(t, as_value(t, right), as_value(t, left))
        return _turned(t, found) if isinstance(op, ast.NotIn) else found
    fn = OPERATORS[type(op)]
    if elements.is_array(t, left) or elements.is_array(t, right):
        return elements.combine(t, fn, left, right)
    if isinstance(left, Static) and isinstance(right, Static) and fn in ("eq", "ne"):
        return t.literal((left.value == right.value) == (fn == "eq"))
    return values(t, fn, as_value(t, left), as_value(t, right))


def _turned(t: Translator, test: Val) -> Val:
    if test.is_literal:
        return t.literal(not test.literal)
    return t.apply("bool.not", [test], BOOL)


def _identity(t: Translator, left: Expression, right: Expression, negated: bool) -> Val:
    if isinstance(left, Static) and isinstance(right, Static):
        return t.literal((left.value is right.value) != negated)
    a, b = as_value(t, left), as_value(t, right)
    kinds = t.resolve(a.kind), t.resolve(b.kind)
    if NONE in kinds:
        return t.literal((kinds[0] == kinds[1]) != negated)
    if a.literal in (True, False) and kinds == (BOOL, BOOL):
        same = values(t, "eq", a, b)
        return _turned(t, same) if negated else same
    if kinds == (BOOL, BOOL):
        return values(t, "ne" if negated else "eq", a, b)
    containers = all(isinstance(k, List | Dict | Set) for k in kinds)
    if not containers or kinds[0] != kinds[1]:
        raise t.refusal(f"'is' of {kinds[0]} and {kinds[1]}")
    same = t.apply("same", [a, b], BOOL)
    return _turned(t, same) if negated else same


def values(t: Translator, fn: str, a: Val, b: Val) -> Val:
    """eq, ne, lt, le, gt or ge of two values."""
    left, right = t.resolve(a.kind), t.resolve(b.kind)
    if is_number(left) and is_number(right):
        return arithmetic.numbers(t, fn, a, b)
    if left == right == STR:
        folded = arithmetic.fold(t, fn, a, b)
        return folded or t.apply(f"str.{fn}", [a, b], BOOL)
    if fn in ("eq", "ne"):
        return _equality(t, fn, a, b, left, right)
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return _tuple_order(t, fn, a, b, 0)
    raise t.refusal(f"the order of {left} and {right}")


def _equality(t: Translator, fn: str, a: Val, b: Val, left: Type, right: Type) -> Val:
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        same = _tuples_equal(t, a, b, left, right)
    elif isinstance(left, List) and isinstance(right, List):
        same = _lists_equal(t, a, b, left, right)
    elif isinstance(left, Array | Dict | Set) or isinstance(right, Array | Dict | Set):
        raise t.refusal(f"'==' of {left} and {right}")
    else:
        same = t.literal(left == right == NONE)
    return _turned(t, same) if fn == "ne" else same


def _tuples_equal(t: Translator, a: Val, b: Val, left: Tuple, right: Tuple) -> Val:
    if len(left.items) != len(right.items):
        return t.literal(False)
    same = t.literal(True)
    for i in range(len(left.items)):
        test = member_equal(t, t.item(a, i), t.item(b, i))
        if not test.is_literal:
            same = test if same.is_literal and same.literal else _both(t, same, test)
        elif not test.literal:
            same = test
    return same


def _both(t: Translator, a: Val, b: Val) -> Val:
    return a if a.is_literal and not a.literal else t.apply("bool.and", [a, b], BOOL)


def _tuple_order(t: Translator, fn: str, a: Val, b: Val, at: int) -> Val:
    """By the first members that differ."""
    left, right = t.resolve(a.kind), t.resolve(b.kind)
    assert isinstance(left, Tuple) and isinstance(right, Tuple)
    if at == min(len(left.items), len(right.items)):
        lengths = t.literal(len(left.items)), t.literal(len(right.items))
        return values(t, fn, *lengths)
    x, y = t.item(a, at), t.item(b, at)
    same, strict = member_equal(t, x, y), is_true(t, values(t, fn, x, y))
    rest = _tuple_order(t, fn, a, b, at + 1)
    if same.is_literal:
        return rest if same.literal else strict
    return t.apply("select", [same, rest, strict], BOOL)


def _lists_equal(t: Translator, a: Val, b: Val, left: List, right: List) -> Val:
    """As long, and no pair of items differs."""
    lengths = [t.apply("list.len", [v], INT) for v in (a, b)]
    same = t.temporary(t.apply("int.eq", lengths, BOOL))

    def compare_items(i: Val) -> None:
        items = [t.apply("list.get", [v, i], k.item, site) for v, k in ((a, left), (b, right))]
        equal = member_equal(t, *items)
        t.assign(same, t.apply("bool.and", [t.read(same), equal], BOOL))

    site = t.site("IndexError", "list index out of range")
    less = t.apply("int.lt", lengths, BOOL)
    shorter = t.apply("select", [less, *lengths], INT)
    span = Range(t.literal(0), shorter, t.literal(1))
    for_each(t, ("equal", t.line, same), span, compare_items)
    return t.read(same)


def member_equal(t: Translator, a: Val, b: Val) -> Val:
    """`a is b or a == b`, by which containers compare: whether one nan is another only the
    interpreter knows."""
    kinds = [t.resolve(v.kind) for v in (a, b)]
    if kinds[0] == kinds[1] and not (a.is_literal or b.is_literal):
        prefix = "float" if kinds[0] == FLOAT else "scalar"
        if kinds[0] == FLOAT or (isinstance(kinds[0], Scalar) and kinds[0].dtype in "fd"):
            tests = [t.apply(f"{prefix}.isnan", [v], BOOL) for v in (a, b)]
            t.do("fail_if", [t.apply("bool.and", tests, BOOL)], t.site("ValueError", "one nan?"))
    return is_true(t, values(t, "eq", a, b))


def _in_range(t: Translator, span: Range, item: Val) -> Val:
    if t.resolve(item.kind) != INT or span.step.literal != 1:
        raise t.refusal("'in' of a range with a step, or of something but an int")
    ends = values(t, "ge", item, span.start), values(t, "lt", item, span.stop)
    return t.apply("bool.and", ends, BOOL)


def contains(t: Translator, container: Val, item: Val) -> Val:
    """item in container"""
    kind = t.resolve(container.kind)
    if kind == STR:
        if t.resolve(item.kind) != STR:
            raise t.refusal("something but a string in a string")
        at = t.apply("str.find", [container, item], INT)
        return t.apply("int.ge", [at, t.literal(0)], BOOL)
    if isinstance(kind, Dict | Set):
        key = kind.key if isinstance(kind, Dict) else kind.item
        wanted = t.convert(item, learn_key(t, key, item))
        name = "dict" if isinstance(kind, Dict) else "set"
        place = t.apply(f"{name}.find", [container, wanted], INT)
        return t.apply("bool.of_int", [place], BOOL)
    if isinstance(kind, Tuple):
        found = t.literal(False)
        for i in range(len(kind.items)):
            test = member_equal(t, t.item(container, i), item)
            if test.is_literal and test.literal:
                return test
            if not test.is_literal:
                found = test if found.is_literal else t.apply("bool.or", [found, test], BOOL)
        return found
    if isinstance(kind, List):
        return _in_list(t, container, item)
    raise t.refusal(f"'in' of {kind}")


def _in_list(t: Translator, container: Val, item: Val) -> Val:
    found = t.temporary(t.literal(False))

    def check(other: Val) -> None:
        test = member_equal(t, other, item)
        t.assign(found, t.apply("bool.or", [t.read(found), test], BOOL))

    for_each(t, ("in", t.line, found), container, check)
    return t.read(found)
