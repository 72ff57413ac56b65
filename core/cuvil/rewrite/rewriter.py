"""The one door to change a graph: what a rule builds with, undone where the rule says no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import NameLoc
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from cuvil.ir.build import Builder, constant_array
from cuvil.ir.dims import DEFAULT
from cuvil.ir.graph import Graph
from cuvil.ir.pool import Constant
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.rewrite.values import has_record, owner


class Rewriter(Builder):
    """A builder that stands before the op a rule looks at (`root`).

    `ranges` are the known bounds of symbols, for `dims.known_ge` and the like.
    """

    root: Operation

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.block, graph.pool)
        self.ranges: Mapping[str, tuple[int, int | None]] = graph.bounds or DEFAULT
        self.made: list[Operation] = []

    def start(self, root: Operation) -> None:
        """Turns to another root: new ops go before it and carry its location."""
        self.root = root
        assert root.parent is not None
        self.point = InsertPoint(root.parent, root)
        self.loc = root.location
        self.made = []

    def insert(self, op: Operation) -> Operation:
        """Inserts an op before the root and remembers it."""
        self.made.append(super().insert(op))
        return op

    def undo(self) -> None:
        """Removes what was built since `start`."""
        for op in reversed(self.made):
            op.detach()  # type: ignore[no-untyped-call]
            op.erase()
        self.made = []

    def producer(self, value: SSAValue, *names: str) -> Operation | None:
        """The primitive that makes a value, where it has one of these names.

        None also where it stands in another region than the root: to pull it in would move its
        work into a branch or a loop. Constants may stand anywhere.
        """
        op = owner(value)
        if op is None or not has_record(op) or of(op).name not in names:
            return None
        return op if op.parent is self.root.parent or op.name == "cuvil.constant" else None

    def keep_location(self, op: Operation) -> None:
        """What is built from here on carries the location of this op, where it has one."""
        if isinstance(op.location, NameLoc):
            self.loc = op.location

    def like(self, op: Operation, operands: Sequence[SSAValue], **changed: Any) -> Any:
        """The same primitive on other operands, with some attributes changed."""
        attrs = {k: v for k, v in vars(attrs_of(op)).items() if v is not None}
        return self.emit(of(op).name, operands, **{**attrs, **changed})

    def pool_constant(self, value: SSAValue) -> Constant | None:
        """The pool's entry for a constant; an inline one is added. None where it is unknown."""
        op = owner(value)
        if op is None or op.name != "cuvil.constant":
            return None
        key = attrs_of(op).key
        if not key:
            return self.pool.add_array(constant_array(op, self.pool))
        return self.pool.get(key) if key in self.pool else None

    def array(self, value: SSAValue) -> np.ndarray[Any, Any] | None:
        """The array of a constant; None where the pool lacks it (text without its pool)."""
        op = owner(value)
        assert op is not None
        key = attrs_of(op).key
        return None if key and key not in self.pool else constant_array(op, self.pool)

    def inline(self, region: Region, args: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """Moves a region's ops before the root; gives what the region yields.

        The region is emptied: the rule must replace its op.
        """
        block: Block = region.block
        for arg, value in zip(block.args, args, strict=True):
            arg.replace_all_uses_with(value)
        *body, last = list(block.ops)
        results = tuple(last.operands)
        last.detach()  # type: ignore[no-untyped-call]
        last.erase()
        for op in body:
            op.detach()  # type: ignore[no-untyped-call]
            self.insert(op)
        return results

    def same_dims(self, value: SSAValue, like: SSAValue) -> SSAValue:
        """`value` with the dims of `like` written the same way; they must be equal when run."""
        want = tensor_type(like).dims
        if tensor_type(value).dims == want:
            return value
        result: SSAValue = self.emit("reshape", [value], dims=want)
        return result
