"""Statements: assignments, branches, loops, return and raise."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import BOOL, INT, Array, Dict, Element, List, Set, Tuple
from cuvil.jit_compiler.frontend import tensors
from cuvil.jit_compiler.frontend.expressions import (
    as_value,
    binary,
    condition,
    expression,
    note_write,
    value_of,
)
from cuvil.jit_compiler.frontend.iteration import for_each, known
from cuvil.jit_compiler.frontend.subscripts import delete_item, find_key, store_item
from cuvil.jit_compiler.frontend.translator import Pending, Translator
from cuvil.jit_compiler.frontend.values import Val

_FRESH = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp, ast.BinOp)
_MAKERS = ("list", "sorted", "dict", "set")


def statements(t: Translator, body: list[ast.stmt]) -> None:
    """Translates statements up to one behind which nothing runs."""
    for node in body:
        if t.builder.is_ended:
            return
        t.line = node.lineno
        builder, depth = t.builder, len(t.loops)
        try:
            handler = _STATEMENTS.get(type(node))
            if handler is None:
                raise t.refusal(f"the statement '{type(node).__name__.lower()}'")
            handler(t, node)
        except Pending as pending:  # the next pass knows more
            t.pending = t.pending or t.refusal(str(pending))
            t.builder = builder
            del t.loops[depth:]


def _is_fresh(node: ast.expr) -> bool:
    """Whether an expression makes a container that nobody else knows."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.Call):
        made = isinstance(node.func, ast.Name) and node.func.id in _MAKERS
        return made or (
            isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "copy")
        )
    return isinstance(node, _FRESH)


def assign_to(t: Translator, target: ast.expr, value: Val, fresh: bool = False) -> None:
    """Gives a target of an assignment a value."""
    if isinstance(target, ast.Name):
        owned = fresh and isinstance(t.resolve(value.kind), List | Dict | Set)
        t.assign(t.renames.get(target.id, target.id), value, owned)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(t, target.elts, value)
    elif isinstance(target, ast.Subscript):
        store_item(t, target, value)
    else:
        raise t.refusal(f"assignment to {ast.unparse(target)}")


def _unpack(t: Translator, targets: list[ast.expr], value: Val) -> None:
    kind = t.resolve(value.kind)
    if any(isinstance(x, ast.Starred) for x in targets):
        raise t.refusal("unpacking with *")
    if isinstance(kind, Tuple):
        if len(kind.items) != len(targets):
            raise t.refusal(f"{len(targets)} targets for {len(kind.items)} values")
        for i, target in enumerate(targets):
            assign_to(t, target, t.item(value, i))
        return
    for item, target in zip(_items(t, value, len(targets)), targets, strict=True):
        assign_to(t, target, item)


def _items(t: Translator, value: Val, count: int) -> list[Val]:
    """The members of a list or rows of an array that must have so many."""
    kind = t.resolve(value.kind)
    site = t.site("ValueError", f"not enough values to unpack (expected {count})")
    if isinstance(kind, List):
        length = t.apply("list.len", [value], INT)
    elif isinstance(kind, Array):
        length = t.apply("array.extent", [value], INT, None, [0])
    else:
        raise t.refusal(f"unpacking {kind}")
    wrong = t.apply("int.ne", [length, t.literal(count)], BOOL)
    t.do("fail_if", [wrong], site)
    found = []
    for i in range(count):
        if isinstance(kind, List):
            found.append(t.apply("list.at", [value, t.literal(i)], kind.item))
        elif kind.rank == 1:
            found.append(t.apply("array.get", [value, t.literal(i)], kind.element, site))
        else:
            part = Array(kind.dtype, kind.rank - 1, kind.contiguous, kind.writable, kind.fresh)
            found.append(t.apply("array.part", [value, t.literal(i)], part, site))
    return found


def _assign(t: Translator, node: ast.Assign) -> None:
    value = value_of(t, node.value)
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            _assign_each(t, target.elts, node.value.elts, value)
        else:
            assign_to(t, target, value, _is_fresh(node.value))


def _assign_each(t: Translator, targets: list[ast.expr], nodes: list[ast.expr], value: Val) -> None:
    """`a, b = [], 0`: each part by itself, so that it is known to be new."""
    if len(targets) != len(nodes) or any(isinstance(x, ast.Starred) for x in targets):
        raise t.refusal(f"{len(targets)} targets for {len(nodes)} values")
    for i, (target, node) in enumerate(zip(targets, nodes, strict=True)):
        assign_to(t, target, t.item(value, i), _is_fresh(node))


def _annotated(t: Translator, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign_to(t, node.target, value_of(t, node.value), _is_fresh(node.value))


def _augmented(t: Translator, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        before = value_of(t, ast.copy_location(ast.Name(target.id, ast.Load()), target))
        kind = t.resolve(before.kind)
        after = binary(t, node.op, before, expression(t, node.value), in_place=True, node=target)
        if isinstance(kind, Element):
            tensors.check_in_place(t, kind, as_value(t, after))
        if not isinstance(kind, Array | List | Set):
            t.assign(target.id, as_value(t, after))
    elif isinstance(target, ast.Subscript):
        _augmented_item(t, node, target)
    else:
        raise t.refusal(f"assignment to {ast.unparse(target)}")


def _augmented_item(t: Translator, node: ast.AugAssign, target: ast.Subscript) -> None:
    """The container and the index are computed once."""
    held = ast.Name(t.temporary(value_of(t, target.value)), ast.Load())
    index: ast.expr = target.slice
    if not isinstance(index, ast.Slice | ast.Constant | ast.UnaryOp):
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if not any(isinstance(p, ast.Slice) for p in parts):
            index = ast.Name(t.temporary(value_of(t, index)), ast.Load())
    place = ast.Subscript(held, index, ast.Load())
    for made in (held, index, place):
        ast.copy_location(made, target)
    if isinstance(target.value, ast.Name) and target.value.id in t.env:
        owned = t.env[target.value.id].owned
        t.env[held.id] = t.env[held.id].__class__(t.env[held.id].kind, False, owned)
    if isinstance(node.value, ast.Constant | ast.Name) and _augmented_value(t, node, place):
        return
    before = expression(t, place)
    store_item(t, place, as_value(t, binary(t, node.op, before, expression(t, node.value))))


def _augmented_value(t: Translator, node: ast.AugAssign, place: ast.Subscript) -> bool:
    """`table[key] += plain`: the key is looked up once. False where that is not what it is."""
    table = value_of(t, place.value)
    kind = t.resolve(table.kind)
    if not isinstance(kind, Dict) or isinstance(place.slice, ast.Slice):
        return False
    value = t.resolve(kind.value)
    address = find_key(t, table, value_of(t, place.slice))
    before = t.apply("dict.load", [address], known(t, value))
    after = as_value(t, binary(t, node.op, before, expression(t, node.value)))
    if t.resolve(after.kind) != value:
        t.learn(kind.value, after.kind)
        raise Pending("values of a dict")
    note_write(t, place.value, kind)
    t.do("dict.store", [address, after])
    return True


def _if(t: Translator, node: ast.If) -> None:
    test = condition(t, node.test)
    if test.is_literal:
        statements(t, node.body if test.literal else node.orelse)
        return
    branch(t, test, lambda: statements(t, node.body), lambda: statements(t, node.orelse))


def branch(
    t: Translator, test: Val, then: Callable[[], None], otherwise: Callable[[], None]
) -> None:
    """Two blocks, of which one runs; then what the variables are behind them."""
    before, outer = dict(t.env), t.builder
    ends, blocks = [], []
    for body in (then, otherwise):
        block = value_block()
        t.builder, t.env = PyBuilder(block), dict(before)
        body()
        blocks.append(block)
        if not t.builder.is_ended:
            ends.append((t.builder, t.env))
    t.builder = outer
    t.env = t.merge(ends) if ends else before
    outer.if_(test.ssa, blocks[0], blocks[1])
    if not ends:
        outer.fail(t.site("RuntimeError", "behind a return"))


def _with_else(t: Translator, node: ast.For | ast.While, loop: Callable[[], None]) -> None:
    """A loop, then its `else` where no `break` left it."""
    if not node.orelse:
        loop()
        return
    left = f".left.{node.lineno}.{node.col_offset}"
    t.leaving[node.lineno, node.col_offset] = left
    t.assign(left, t.literal(False))
    loop()
    whole = t.apply("bool.not", [t.read(left)], BOOL)
    branch(t, whole, lambda: statements(t, node.orelse), lambda: None)


def _while(t: Translator, node: ast.While) -> None:
    _with_else(t, node, lambda: _while_loop(t, node))


def _while_loop(t: Translator, node: ast.While) -> None:
    key, outer = (node.lineno, node.col_offset), t.builder
    head = t.known_head(key)
    test_block, body_block = value_block(), value_block()
    t.builder, t.env = PyBuilder(test_block), dict(head)
    test = condition(t, node.test)
    t.builder.yield_([test.ssa])
    at_test = dict(t.env)
    t.builder = PyBuilder(body_block)
    t.loops.append((key, head))
    statements(t, node.body)
    if not t.builder.is_ended:
        t.back_edge(key, head)
    t.loops.pop()
    t.builder, t.env = outer, {**at_test, **head}
    t.builder.while_(test_block, body_block)


def _for(t: Translator, node: ast.For) -> None:
    def body(item: Val) -> None:
        assign_to(t, node.target, item)
        statements(t, node.body)

    items = expression(t, node.iter)
    key = (node.lineno, node.col_offset)
    _with_else(t, node, lambda: for_each(t, key, items, body))


def _leave(t: Translator, node: ast.Break | ast.Continue) -> None:
    key, head = t.loops[-1]
    if isinstance(node, ast.Break) and key in t.leaving:
        t.assign(t.leaving[key], t.literal(True))
    t.back_edge(key, head)
    if isinstance(node, ast.Break):
        t.builder.break_()
    else:
        t.builder.continue_()


def _return(t: Translator, node: ast.Return) -> None:
    t.return_(t.none() if node.value is None else value_of(t, node.value))


def _expression(t: Translator, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        expression(t, node.value)


def _raise(t: Translator, node: ast.Raise) -> None:
    """An exception of Python's own with a literal message, or what the interpreter makes of it."""
    made, text = node.exc, ""
    if isinstance(made, ast.Call):
        text = "".join(a.value for a in made.args if isinstance(a, ast.Constant)
                       and isinstance(a.value, str))  # fmt: skip
        made = made.func
    name = made.id if isinstance(made, ast.Name) else "RuntimeError"
    t.builder.fail(t.site(name, text))


def _assert(t: Translator, node: ast.Assert) -> None:
    test = condition(t, node.test)
    wrong = t.apply("bool.not", [test], test.kind)
    text = node.msg.value if isinstance(node.msg, ast.Constant) else ""
    t.do("fail_if", [wrong], t.site("AssertionError", str(text)))


def _delete(t: Translator, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            delete_item(t, target)
        elif isinstance(target, ast.Name) and target.id in t.env:
            del t.env[target.id]
        else:
            raise t.refusal(f"del {ast.unparse(target)}")


def _pass(t: Translator, node: ast.stmt) -> None:
    pass


_STATEMENTS: dict[type, Callable[[Translator, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Break: _leave,
    ast.Continue: _leave,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Pass: _pass,
}
