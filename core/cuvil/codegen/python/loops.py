"""Which indices of a loop can be tested once, before it, instead of in every trip, and which loops
can go on after a failure and be run again."""

from __future__ import annotations

from dataclasses import dataclass

from cuvil.ir import py
from cuvil.ir.names import Operation, Value
from cuvil.ir.py_types import FLOAT

REPEATABLE = frozenset((
    "list.len", "list.at", "list.put", "int.next", "int.lt", "tuple.of", "tuple.get",
    "float.add", "float.sub", "float.mul", "float.truediv", "float.pow", "float.neg", "float.abs",
    "float.sqrt",
))  # fmt: skip
INDEXED = ("array.get", "array.set", "array.part")


@dataclass(frozen=True)
class Access:
    """An index `i + offset` of an array that does not change in the loop over i.

    position: of the index among the op's indices, and so the axis. variable: that the array is
    read from in the loop, None where it is a value from before the loop.
    """

    op: Operation
    array: Value
    variable: str | None
    position: int
    offset: int


def accesses(loop: py.ForOp) -> list[Access]:
    """Those of a loop by 1, inner loops included."""
    if loop.step_value is None or loop.step_value.value.data != 1:
        return []
    counters, written = _counters(loop), _written(loop)
    inside = set(loop.body.block.walk())
    found = []
    for op in loop.body.block.walk():
        if not isinstance(op, py.ApplyOp) or op.fn.data not in INDEXED:
            continue
        owner = op.args_[0].owner
        variable = None
        if owner in inside:
            if not isinstance(owner, py.GetOp) or owner.site is not None:
                continue
            variable = owner.variable.data
        if variable in written:
            continue
        indices = op.args_[1:-1] if op.fn.data == "array.set" else op.args_[1:]
        for position, index in enumerate(indices):
            offset = _offset(index, counters)
            if offset is not None:
                found.append(Access(op, op.args_[0], variable, position, offset))
    return found


def _written(loop: py.ForOp) -> dict[str, int]:
    """How often each variable is written in the loop."""
    count: dict[str, int] = {}
    for op in loop.body.block.walk():
        if isinstance(op, py.SetOp):
            count[op.variable.data] = count.get(op.variable.data, 0) + 1
    return count


def _counters(loop: py.ForOp) -> set[object]:
    """What is the loop's index: the block's argument, and the variable that only it is put in."""
    argument = loop.body.block.args[0]
    written = _written(loop)
    first = loop.body.block.first_op
    found: set[object] = {argument}
    if isinstance(first, py.SetOp) and first.value is argument:
        found |= {first.variable.data} if written[first.variable.data] == 1 else set()
    return found


def _offset(index: Value, counters: set[object]) -> int | None:
    """c where the index is i + c."""
    owner = index.owner
    if index in counters:
        return 0
    if isinstance(owner, py.GetOp):
        return 0 if owner.variable.data in counters else None
    if not isinstance(owner, py.ApplyOp) or owner.fn.data not in ("int.add", "int.sub"):
        return None
    literal = owner.args_[1].owner
    if not isinstance(literal, py.ConstantOp) or literal.value is None:
        return None
    base = _offset(owner.args_[0], counters)
    step = literal.value.value.data  # type: ignore[attr-defined]
    if base is None or abs(step) > 1 << 20:
        return None
    return base + (step if owner.fn.data == "int.add" else -step)


@dataclass(frozen=True)
class Collection:
    """A loop over a list that puts a float into another in every trip, and does nothing else that
    lasts. written: the variables that it changes."""

    put: py.ApplyOp
    counter: py.GetOp
    source: Value
    written: dict[str, Value]


def collection(loop: py.WhileOp) -> Collection | None:
    """The loop as one, where it is."""
    condition, body = list(loop.condition.block.ops), list(loop.body.block.ops)
    if not all(_is_repeatable(op) for op in (*condition, *body)):
        return None
    puts = [op for op in body if isinstance(op, py.ApplyOp) and op.fn.data == "list.put"]
    lengths = [op for op in condition if isinstance(op, py.ApplyOp) and op.fn.data == "list.len"]
    if len(puts) != 1 or len(lengths) != 1 or py.type_of(puts[0].args_[2]) != FLOAT:
        return None
    counter, source, inside = puts[0].args_[1].owner, lengths[0].args_[0], {*condition, *body}
    if puts[0].args_[0].owner in inside or source.owner in inside:
        return None
    if not isinstance(counter, py.GetOp):
        return None
    written = {op.variable.data: op.value for op in body if isinstance(op, py.SetOp)}
    return Collection(puts[0], counter, source, written)


def _is_repeatable(op: Operation) -> bool:
    if isinstance(op, py.ApplyOp):
        return op.fn.data in REPEATABLE
    if isinstance(op, py.GetOp):
        return op.site is None
    return isinstance(op, py.SetOp | py.ConstantOp | py.YieldOp)
