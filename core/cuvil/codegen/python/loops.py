"""Which indices of a loop can be tested once, before it, instead of in every trip."""

from __future__ import annotations

from dataclasses import dataclass

from cuvil.ir import py
from cuvil.ir.names import Operation, Value

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
