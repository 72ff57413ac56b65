"""What is fused behind a template, as a region from an accumulator to the stored element."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.names import Block, Value
from cuvil.ir.nest_build import INDEX, Index
from cuvil.ir.record import tensor_type
from cuvil.ir.types import ElementType
from cuvil.plan.kernel import Draft
from cuvil.plan.pull import Axes, Puller


def epilogue(draft: Draft, walked: Sequence[int | None], rank: int, axes: Axes | None) -> Block:
    """The region's block: (accumulator, an index per walked dim, column) -> element.

    walked: which axis of the result (as `axes` walks it) each dim of the template walks, None for
    none; the column walks the last axis.
    """
    root, anchor = draft.group.root, draft.group.anchor
    assert anchor is not None
    kind = tensor_type(anchor.results[0]).dtype.name
    block = Block(arg_types=[ElementType.new(kind), *[INDEX] * (len(walked) + 1)])
    acc, *indices = block.args
    at: list[Index] = [0] * rank
    for axis, value in zip(walked, indices[:-1], strict=True):
        if axis is not None:
            at[axis] = value
    at[-1] = indices[-1]
    with draft.b.inside(block):
        element: Value = acc
        if root is not anchor:
            puller = Puller(draft.b, draft.pool, draft.reads, draft.layouts, draft.run, axes=axes)
            puller.given[anchor.results[0]] = lambda _: acc
            element = puller.element_of(root, at)
        draft.b.yield_(element)
    return block
