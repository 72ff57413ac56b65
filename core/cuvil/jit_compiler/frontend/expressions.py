"""Expressions: names, literals, operators, conditions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import (
    BOOL,
    INT,
    NONE,
    STR,
    Array,
    Dict,
    List,
    Scalar,
    Set,
    Tensor,
    Tuple,
    Type,
    is_number,
)
from cuvil.jit_compiler.frontend import arithmetic, elements, tensors
from cuvil.jit_compiler.frontend.translator import Pending, Translator
from cuvil.jit_compiler.frontend.values import Expression, Leaf, Node, Static, Val

Handler = Callable[[Translator, Any], Expression]
HANDLERS: dict[type, Handler] = {}
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt",
    ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


def handler(*kinds: type) -> Callable[[Handler], Handler]:
    """Registers what translates a kind of expression."""

    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(kinds, function))
        return function

    return register


def expression(t: Translator, node: ast.expr) -> Expression:
    """What an expression is."""
    t.line = node.lineno
    found = HANDLERS.get(type(node))
    if found is None:
        raise t.refusal(f"the expression '{type(node).__name__}'")
    return found(t, node)


def as_value(t: Translator, value: Expression) -> Val:
    """An expression computed."""
    if isinstance(value, Val):
        return value
    if isinstance(value, Node | Leaf):
        return elements.compute(t, value)
    if isinstance(value, Static):
        return static_value(t, value)
    raise t.refusal("a range or other iterator as a value")


def value_of(t: Translator, node: ast.expr) -> Val:
    """An expression's value."""
    return as_value(t, expression(t, node))


def static_value(t: Translator, value: Static) -> Val:
    """A constant from outside of the function."""
    found = value.value
    if type(found) in (bool, int, float, str, type(None)):
        return t.literal(found)
    if isinstance(found, np.generic) and found.dtype.char in "?bBhHiIlLfd":
        kind = Scalar(found.dtype.char)
        return Val(kind, t.builder.constant(found.item(), kind), found.item())
    raise t.refusal(f"'{value.path}' of type {type(found).__name__} as a value")


@handler(ast.Constant)
def _constant(t: Translator, node: ast.Constant) -> Expression:
    return t.literal(node.value)


@handler(ast.Name)
def _name(t: Translator, node: ast.Name) -> Expression:
    name = t.renames.get(node.id, node.id)
    if name in t.env:
        return t.read(name)
    if name in t.source.python.__code__.co_varnames:
        raise Pending(f"'{name}' is of several types here, or has no value")
    return outside(t, name)


def outside(t: Translator, name: str) -> Expression:
    """A global, a builtin, or a variable of an enclosing function: as it is now, guarded."""
    try:
        found, (space, key) = t.source.look_up(name)
    except KeyError:
        raise t.refusal(f"name '{name}' is not defined") from None
    t.program.guards[id(space), key] = (space, key, found)
    more = t.program_value(name, found)
    return Static(found, name) if more is None else more


@handler(ast.Attribute)
def _attribute(t: Translator, node: ast.Attribute) -> Expression:
    base = expression(t, node.value)
    if isinstance(base, Static):
        path = f"{base.path}.{node.attr}"
        try:
            return Static(getattr(base.value, node.attr), path)
        except AttributeError:
            raise t.refusal(f"{path} does not exist") from None
    value = as_value(t, base)
    kind = t.resolve(value.kind)
    if isinstance(kind, Array):
        return elements.attribute(t, value, kind, node.attr)
    if isinstance(kind, Tensor):
        return tensors.attribute(t, value, kind, node.attr)
    raise t.refusal(f"the attribute '{node.attr}' of {kind}")


@handler(ast.UnaryOp)
def _unary(t: Translator, node: ast.UnaryOp) -> Expression:
    if isinstance(node.op, ast.Not):
        test = condition(t, node.operand)
        if test.is_literal:
            return t.literal(not test.literal)
        return t.apply("bool.not", [test], BOOL)
    value = expression(t, node.operand)
    if elements.is_array(t, value):
        name = {ast.USub: "neg", ast.Invert: "invert", ast.UAdd: "pos"}[type(node.op)]
        return elements.unary(t, name, value)
    value = as_value(t, value)
    if isinstance(node.op, ast.USub):
        return arithmetic.negate(t, value)
    kind = t.resolve(value.kind)
    if isinstance(node.op, ast.UAdd) and is_number(kind):
        return t.convert(value, INT) if kind == BOOL else value
    if isinstance(node.op, ast.Invert) and (kind == INT or isinstance(kind, Scalar)):
        name = "int.invert" if kind == INT else "scalar.invert"
        return t.apply(name, [value], arithmetic.made_now(kind))
    raise t.refusal(f"'{ast.unparse(node)}' of {kind}")


@handler(ast.BinOp)
def _binary(t: Translator, node: ast.BinOp) -> Expression:
    left = expression(t, node.left)
    right = expression(t, node.right)
    if isinstance(node.op, ast.MatMult):
        return MATRIX_PRODUCT[0](t, as_value(t, left), as_value(t, right))
    return binary(t, node.op, left, right)


MATRIX_PRODUCT: list[Callable[[Translator, Val, Val], Val]] = []
"""What `@` is, put here by the module that knows."""


def binary(
    t: Translator,
    op: ast.operator | ast.cmpop,
    left: Expression,
    right: Expression,
    in_place: bool = False,
    node: ast.expr | None = None,
) -> Expression:
    """An operator. in_place: of `x op= y`, which changes arrays and lists themselves."""
    fn = OPERATORS.get(type(op))
    if fn is None:
        raise t.refusal(f"the operator '{type(op).__name__}'")
    if elements.is_array(t, left) or elements.is_array(t, right):
        if in_place:
            return elements.in_place(t, fn, as_value(t, left), right)
        return elements.combine(t, fn, left, right)
    a, b = as_value(t, left), as_value(t, right)
    kinds = t.resolve(a.kind), t.resolve(b.kind)
    if is_number(kinds[0]) and is_number(kinds[1]):
        return arithmetic.numbers(t, fn, a, b)
    if fn == "add" and kinds == (STR, STR):
        return t.apply("str.concat", [a, b], STR)
    if fn == "mul" and INT in kinds and STR in kinds:
        return t.apply("str.repeat", [a, b] if kinds[0] == STR else [b, a], STR)
    return _containers(t, fn, a, b, in_place, node)


def _containers(
    t: Translator, fn: str, a: Val, b: Val, in_place: bool, node: ast.expr | None
) -> Val:
    left, right = t.resolve(a.kind), t.resolve(b.kind)
    if fn == "add" and isinstance(left, List) and isinstance(right, List):
        joined = t.join(left, right)
        if joined is None:
            raise t.refusal(f"{left} + {right}")
        sides = [Val(joined, v.ssa) for v in (a, b)]
        if in_place:
            note_write(t, node, joined)
            t.do("list.extend", sides)
            return sides[0]
        return t.apply("list.concat", sides, joined)
    if fn == "mul" and isinstance(left, List) and right == INT:
        return t.apply("list.repeat", [a, b], left)
    if fn == "add" and isinstance(left, Tuple) and isinstance(right, Tuple):
        items = [t.item(v, i) for v, k in ((a, left), (b, right)) for i in range(len(k.items))]
        return t.tuple_of(items)
    raise t.refusal(f"'{fn}' of {left} and {right}")


def note_write(t: Translator, node: ast.expr | None, kind: Type) -> None:
    """A container is changed: arguments of its type may be it, unless a variable's is the
    function's own."""
    if isinstance(node, ast.Name):
        binding = t.env.get(t.renames.get(node.id, node.id))
        if binding is not None and binding.owned:
            return
    t.program.written.add(t.resolve(kind))


@handler(ast.BoolOp)
def _bool_op(t: Translator, node: ast.BoolOp) -> Expression:
    """`and` and `or` give one of their operands."""
    value = value_of(t, node.values[0])
    for part in node.values[1:]:
        test = is_true(t, value)
        stop = isinstance(node.op, ast.Or)
        if test.is_literal:
            if test.literal == stop:
                return value
            value = value_of(t, part)
            continue
        value = _short(t, test, value, part, stop)
    return value


def _short(t: Translator, test: Val, value: Val, part: ast.expr, stop: bool) -> Val:
    """The value where its truth is `stop`, else the part."""
    return choose(t, test, value if stop else part, part if stop else value)


def choose(t: Translator, test: Val, then: Val | ast.expr, otherwise: Val | ast.expr) -> Val:
    """One of two expressions, of which only that one is computed."""
    before, outer = dict(t.env), t.builder
    ends: list[tuple[PyBuilder, Val]] = []
    for side in (then, otherwise):
        t.builder, t.env = PyBuilder(value_block()), dict(before)
        try:
            value = side if isinstance(side, Val) else value_of(t, side)
        except Pending as pending:  # as `statements` does; the other side may show the type
            t.pending = t.pending or t.refusal(str(pending))
            continue
        ends.append((t.builder, value))
    t.builder, t.env = outer, before
    if not ends:
        raise Pending("both sides of an expression")
    if len(ends) == 1:  # of a pass that is not the last one
        outer.if_(test.ssa, *(ends[0][0].block, value_block()))
        return t.apply("retype", [Val(ends[0][1].kind, test.ssa)], ends[0][1].kind)
    kind = t.join(ends[0][1].kind, ends[1][1].kind)
    if kind is None:
        kinds = [t.resolve(v.kind) for _, v in ends]
        raise t.refusal(f"{kinds[0]} or {kinds[1]} in one expression")
    blocks = []
    for builder, value in ends:
        t.builder = builder
        builder.yield_([t.convert(value, kind).ssa])
        blocks.append(builder.block)
    t.builder = outer
    return Val(kind, outer.if_(test.ssa, blocks[0], blocks[1], [kind])[0])


@handler(ast.IfExp)
def _if_expression(t: Translator, node: ast.IfExp) -> Expression:
    test = condition(t, node.test)
    if test.is_literal:
        return expression(t, node.body if test.literal else node.orelse)
    return choose(t, test, node.body, node.orelse)


@handler(ast.NamedExpr)
def _named(t: Translator, node: ast.NamedExpr) -> Expression:
    value = value_of(t, node.value)
    t.assign(t.renames.get(node.target.id, node.target.id), value)
    return value


def is_true(t: Translator, value: Val) -> Val:
    """bool(x)"""
    kind = t.resolve(value.kind)
    if kind == NONE:
        return t.literal(False)
    if value.is_literal:
        return t.literal(bool(value.literal))
    if is_number(kind):
        return arithmetic.truth(t, value)
    if kind == STR:
        return t.apply("str.truth", [value], BOOL)
    if isinstance(kind, Tuple):
        return t.literal(bool(kind.items))
    if isinstance(kind, List | Dict | Set):
        name = {List: "list", Dict: "dict", Set: "set"}[type(kind)]
        return t.apply("bool.of_int", [t.apply(f"{name}.len", [value], INT)], BOOL)
    raise t.refusal(f"the truth of {kind}")


def condition(t: Translator, node: ast.expr) -> Val:
    """The truth of an expression; a literal where it is known."""
    t.line = node.lineno
    if isinstance(node, ast.BoolOp):
        return _conditions(t, node)
    return is_true(t, value_of(t, node))


def _conditions(t: Translator, node: ast.BoolOp) -> Val:
    stop = isinstance(node.op, ast.Or)
    found = condition(t, node.values[0])
    for part in node.values[1:]:
        if found.is_literal:
            if found.literal == stop:
                return found
            found = condition(t, part)
            continue
        outer, before = t.builder, dict(t.env)
        t.builder = inner = PyBuilder(value_block())
        inner.yield_([condition(t, part).ssa])
        t.builder, t.env = outer, before
        other = PyBuilder(value_block())
        other.yield_([found.ssa])
        blocks = (other.block, inner.block) if stop else (inner.block, other.block)
        found = Val(BOOL, outer.if_(found.ssa, *blocks, [BOOL])[0])
    return found


def call_python(
    t: Translator, callee: Any, method: str | None, args: list[Val], result: Type
) -> Val:
    """Calls a function of Python's, or a method of the first argument."""
    kinds = tuple(t.resolve(a.kind) for a in args)
    t.program.calls.append((callee, method, kinds, result))
    return t.apply("python.call", args, result, None, [len(t.program.calls) - 1])
