"""Operations whose results nobody uses."""

from __future__ import annotations

from cuvil.ir.names import Block, Operation
from cuvil.ir.record import Primitive

__all__ = ["drop_dead"]


def drop_dead(block: Block) -> None:
    """Erases operations whose results nobody uses, nested blocks first."""
    for op in reversed(list(block.ops)):
        record = getattr(op, "record", None)
        if isinstance(record, Primitive) and record.pure and not any(r.uses for r in op.results):
            block.erase_op(op)
        else:
            _inner(op)


def _inner(op: Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            drop_dead(block)
