"""Matching a pattern against the ops around a root, with backtracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuvil.ir.dtypes import DType
from cuvil.ir.names import Operation, Value
from cuvil.ir.record import attrs_of, of
from cuvil.ops.scalars import SCALARS
from cuvil.rewrite.tree import Capture, Chain, Either, Expr, Literal, Node
from cuvil.rewrite.values import dtype_of, has_record, is_constant, number, owner

_TOLERANCE = 2e-6


@dataclass(frozen=True)
class Match:
    """captured: by name, a Value, a float or an attribute. ops: what matched, the root first."""

    captured: Mapping[str, Any]
    ops: tuple[Operation, ...]


@dataclass(frozen=True)
class _Factor:
    """A literal factor or term that stands as a divisor or subtrahend in a chain."""

    value: float
    like: Value


_Leaf = Value | _Factor


def match(expr: Expr, root: Operation, shared: bool = False) -> Match | None:
    """The first way in which `expr` matches at `root`, or None.

    Ops inside the match (all but the root and constants) are in the root's block and, unless
    `shared`, are not used outside of the match.
    """
    start = Match({}, ())
    for found in _at_op(expr, root, start, root):
        if shared or _closed(found):
            return found
    return None


def _closed(found: Match) -> bool:
    inside = set(found.ops)
    return all(
        use.operation in inside
        for op in found.ops[1:]
        for result in op.results
        for use in result.uses
    )


def _at(expr: Expr, leaf: _Leaf, state: Match, root: Operation) -> Iterator[Match]:
    if isinstance(expr, Capture):
        yield from _capture(expr, leaf, state)
    elif isinstance(expr, Literal):
        if _is_number(leaf, expr.value):
            yield state
    elif isinstance(leaf, Value):
        op = owner(leaf)
        if op is not None and has_record(op) and op.parent is root.parent:
            yield from _at_op(expr, op, state, root)


def _at_op(expr: Expr, op: Operation, state: Match, root: Operation) -> Iterator[Match]:
    if isinstance(expr, Either):
        for form in expr.forms:
            yield from (
                _at_op(form, op, state, root)
                if isinstance(form, Node | Either | Chain)
                else _at(form, op.results[0], state, root)
            )
    elif isinstance(expr, Chain):
        yield from _chain(expr, op, state, root)
    elif isinstance(expr, Node) and of(op).name == expr.name:
        yield from _node(expr, op, state, root)


def _node(expr: Node, op: Operation, state: Match, root: Operation) -> Iterator[Match]:
    if len(expr.operands) != len(op.operands):
        return
    captured = _attributes(expr, op, state.captured)
    if captured is None:
        return
    state = Match(captured, (*state.ops, op))
    orders = [list(op.operands)]
    if len(orders[0]) == 2 and expr.name in SCALARS and SCALARS[expr.name].commutative:
        orders.append(orders[0][::-1])
    for operands in orders:
        yield from _all(expr.operands, operands, state, root)


def _all(
    exprs: Sequence[Expr], leaves: Sequence[_Leaf], state: Match, root: Operation
) -> Iterator[Match]:
    if not exprs:
        yield state
        return
    for found in _at(exprs[0], leaves[0], state, root):
        yield from _all(exprs[1:], leaves[1:], found, root)


def _attributes(expr: Node, op: Operation, captured: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not expr.attrs:
        return captured
    have = attrs_of(op)
    for name, want in expr.attrs:
        value = getattr(have, name)
        if isinstance(want, Capture):
            if captured.get(want.name, value) != value:
                return None
            captured = {**captured, want.name: value}
        elif value != want:
            return None
    return captured


def _capture(expr: Capture, leaf: _Leaf, state: Match) -> Iterator[Match]:
    value = _captured(expr.kind, leaf)
    if value is None:
        return
    if expr.name in state.captured:
        known = state.captured[expr.name]
        same = known is value if isinstance(value, Value) else _close(known, value, _TOLERANCE)
        if same:
            yield state
    else:
        yield Match({**state.captured, expr.name: value}, state.ops)


def _captured(kind: str, leaf: _Leaf) -> Any:
    if isinstance(leaf, _Factor):
        return leaf.value if kind == "number" else None
    if kind == "value":
        return leaf
    if kind == "constant":
        return leaf if is_constant(leaf) else None
    found = number(leaf)
    return None if found is None or isinstance(found, bool) else float(found)


def _is_number(leaf: _Leaf, want: float) -> bool:
    have = leaf.value if isinstance(leaf, _Factor) else number(leaf)
    if have is None or isinstance(have, bool):
        return False
    like = leaf.like if isinstance(leaf, _Factor) else leaf
    kind = dtype_of(like)
    rounding = 2 * _epsilon(kind) if kind.is_float else 0.0
    return _close(float(have), want, max(_TOLERANCE, rounding))


def _epsilon(kind: DType) -> float:
    return {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23}.get(kind.name, 2.0**-52)


def _close(a: float, b: float, tolerance: float) -> bool:
    return a == b or abs(a - b) <= tolerance * max(abs(a), abs(b))


def _chain(expr: Chain, op: Operation, state: Match, root: Operation) -> Iterator[Match]:
    count = len(expr.operands)
    for leaves, ops in _expansions(expr.name, op, count, root):
        inner = Match(state.captured, (*state.ops, *ops))
        yield from _permuted(expr.operands, leaves, inner, root)


def _permuted(
    exprs: Sequence[Expr], leaves: Sequence[_Leaf], state: Match, root: Operation
) -> Iterator[Match]:
    if not exprs:
        yield state
        return
    for i, leaf in enumerate(leaves):
        rest = [*leaves[:i], *leaves[i + 1 :]]
        for found in _at(exprs[0], leaf, state, root):
            yield from _permuted(exprs[1:], rest, found, root)


_Expansion = tuple[list[_Leaf], tuple[Operation, ...]]


def _expansions(name: str, op: Operation, count: int, root: Operation) -> Iterator[_Expansion]:
    """Ways to see `op` as a chain of `count` operands, with the ops that make up the chain."""
    first = _split(name, op)
    if first is None:
        return
    pending: list[_Expansion] = [(first, (op,))]
    while pending:
        leaves, ops = pending.pop()
        if len(leaves) == count:
            yield leaves, ops
            continue
        for i, leaf in enumerate(leaves):
            inner = owner(leaf) if isinstance(leaf, Value) else None
            if inner is None or inner.parent is not root.parent or inner in ops:
                continue
            parts = _split(name, inner)
            if parts is not None:
                pending.append(([*leaves[:i], *parts, *leaves[i + 1 :]], (*ops, inner)))


def _split(name: str, op: Operation) -> list[_Leaf] | None:
    """The operands of one link of a chain; a constant divisor as a factor."""
    if op.name == f"cuvil.{name}":
        return list(op.operands)
    inverse = {"mul": "cuvil.div", "add": "cuvil.sub"}[name]
    if op.name != inverse:
        return None
    value = number(op.operands[1])
    if value is None or (name == "mul" and value == 0):
        return None
    factor = 1 / value if name == "mul" else -value
    return [op.operands[0], _Factor(factor, op.operands[1])]
