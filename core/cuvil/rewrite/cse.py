"""Common subexpressions: of equal pure ops on equal operands, the first one serves all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Block, Operation

from cuvil.ir.record import of
from cuvil.rewrite.values import has_record

Replace = Callable[[Operation, Operation], bool]


def eliminate(block: Block, replace: Replace, outer: dict[Any, Operation] | None = None) -> None:
    """Calls replace(op, first) for every op of the block, nested ones included, that repeats one
    before it; stops where that returns False."""
    seen = dict(outer or {})
    for op in list(block.ops):
        if not has_record(op):
            continue
        for region in op.regions:
            for inner in region.blocks:
                eliminate(inner, replace, seen)
        if op.regions or not of(op).pure or op.attributes:
            continue
        first = seen.setdefault(_key(op), op)
        if first is not op and not replace(op, first):
            return


def _key(op: Operation) -> Any:
    operands = tuple(map(id, op.operands))
    return op.name, operands, tuple(sorted(op.properties.items(), key=_name)), op.result_types


def _name(item: tuple[str, Any]) -> str:
    return item[0]
