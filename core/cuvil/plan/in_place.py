"""Pointwise results that are written over an operand which nobody reads again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.record import tensor_type
from cuvil.plan.groups import Group
from cuvil.plan.kernel import free_of_views
from cuvil.plan.layout import Layouts, storage
from cuvil.plan.memory import Memory
from cuvil.plan.steps import Arena


def overwritten(
    group: Group, reads: Sequence[Value], layouts: Layouts, memory: Memory, done: set[Operation]
) -> Value | None:
    """The operand whose buffer the group's result may take, or None.

    The kernel reads an element before it writes the one at the same index, and no other element
    of it; reads and writes go through one buffer operand. done: ops whose kernels have run.
    """
    known = done | set(group.members)
    for value in candidates(group, reads, layouts, memory):
        if isinstance(memory.places.get(value), Arena) and _read_out(value, known):
            return value
    return None


def candidates(
    group: Group, reads: Sequence[Value], layouts: Layouts, memory: Memory
) -> list[Value]:
    """The operands whose buffers the group's result may take once nobody reads them again."""
    result = group.root.results[0]
    alone = group.anchor is None and len(group.root.results) == 1 and free_of_views(group)
    if not alone or result in memory.wanted or layouts.get(result):
        return []
    kind, steps = tensor_type(result), layouts.strides(result)
    shared = Counter(storage(v, layouts) for v in reads)
    found = []
    for value in reads:
        own = tensor_type(value)
        fits = own.dims == kind.dims and own.dtype == kind.dtype
        alike = layouts.get(value) is None and layouts.strides(value) == steps
        owned = _made_in(group.root.parent, value) and not layouts.parts(value)
        if fits and alike and owned and shared[value] == 1:
            found.append(value)
    return found


def _made_in(block: Block | None, value: Value) -> bool:
    """Whether a plain op of this block has made the value: a loop's body finds what lies outside
    of it again in the next iteration."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent is not block:
        return False
    return not owner.regions and owner.name != "cuvil.reshape"


def _read_out(value: Value, known: set[Operation]) -> bool:
    for use in value.uses:
        op = use.operation
        if op not in known:
            return False
        if op.name in ("cuvil.reshape", "cuvil.slice") and not _read_out(op.results[0], known):
            return False
    return True
