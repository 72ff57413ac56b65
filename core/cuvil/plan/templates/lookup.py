"""A look into a table of 256 bytes for every byte of a tensor."""

from __future__ import annotations

from dataclasses import dataclass

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import template_op
from cuvil.ir.record import tensor_type
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.layout import Layouts
from cuvil.plan.loops import ReadsBack
from cuvil.plan.templates.epilogue import epilogue


@dataclass(frozen=True)
class Match:
    """Codes and table of a lookup, and how many codes there are."""

    codes: Value
    table: Value
    count: Dim


def _match(op: Operation, layouts: Layouts) -> Match | None:
    codes, table = op.operands
    if not isinstance(table.owner, Operation) or table.owner.name != "cuvil.constant":
        return None
    return Match(codes, table, tensor_type(codes).size)


DTYPES = frozenset({"u8", "i8"})
MATCHERS = {"cuvil.lookup": _match}


def reads_in_place(m: Match, value: Value) -> bool:
    """Codes are read one after another."""
    return False


def writes_in_place(m: Match) -> bool:
    """So are entries written."""
    return False


def build(draft: Draft, name: str, m: Match) -> Kernel:
    """The lookup alone; raises ReadsBack where something is fused behind it."""
    if draft.group.root is not draft.group.anchor:
        raise ReadsBack
    block = epilogue(draft, [], max(1, tensor_type(m.codes).rank), None)
    buffers = [
        draft.reads[m.codes],
        draft.reads[m.table],
        draft.writes[draft.group.root.results[0]],
    ]
    draft.block.add_op(template_op("lookup", {"count": [m.count]}, buffers, block))
    return draft.finish(name, 0)
