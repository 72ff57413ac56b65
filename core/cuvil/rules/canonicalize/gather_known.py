"""Gathers with indices that are known."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, numbers


@rule(
    "gather",
    example=[
        case(lambda b, x: b.gather(x, b.const(-1), axis=1), x="[B, 4, 3] f32"),
        case(lambda b, x: b.gather(x, b.const([0, 2]), axis=0), x="[4, 3] f32"),
    ],
    near_miss=[
        case(lambda b, x: b.gather(x, b.const([0, 1, 3]), axis=0), x="[4, 3] f32"),
        case(lambda b, x: b.gather(x, b.const(1), axis=0), x="[B, 3] f32"),  # B may be 1
    ],
)
def gather_known(b: Rewriter, op: Operation) -> Value | None:
    """Indices in even steps are a slice, and one index a slice without its axis."""
    x, indices = op.operands
    axis, found = attrs_of(op).axis, numbers(indices)
    extent = dims_of(x)[axis]
    if found is None or found.size == 0 or not isinstance(extent, int):
        return None
    flat = [int(i) + extent if i < 0 else int(i) for i in found.reshape(-1)]
    step = _even_step(flat)
    if step is None or not all(0 <= i < extent for i in flat):
        return None
    rank = len(dims_of(x))
    attrs: dict[str, list[Any]] = {"starts": [0] * rank, "steps": [1] * rank, "dims": [*dims_of(x)]}
    attrs["starts"][axis], attrs["steps"][axis], attrs["dims"][axis] = flat[0], step, len(flat)
    result: Value = b.reshape(b.slice(x, **attrs), dims=dims_of(op.results[0]))
    return result


def _even_step(indices: list[int]) -> int | None:
    steps = {b - a for a, b in pairwise(indices)} or {1}
    step = steps.pop()
    return None if steps or step == 0 else step
