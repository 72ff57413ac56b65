"""Products of few rows by a matrix that only the run knows: a copy of it in panels would cost more
than the product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from cuvil.ir.build import is_constant
from cuvil.ir.dims import Dim, known_equal
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import template_op
from cuvil.plan.kernel import Draft, Kernel, epilogue_inputs
from cuvil.plan.layout import Layouts, dense
from cuvil.plan.templates import contract

MOST_ROWS = 4  # with more, columns in panels are read often enough to be worth the copy


@dataclass(frozen=True)
class Match:
    """The product as a contraction has it, its batch dims in B as it lies; steps: of B along the
    sum and along the columns, one of which is 1."""

    product: contract.Match
    steps: tuple[Dim, Dim]


def _match(op: Operation, layouts: Layouts) -> Match | None:
    m = contract.MATCHERS["cuvil.contract"](op, layouts)
    if m is None or is_constant(m.b) or len(m.k) != 1 or len(m.rows) > 2 or not _few(m):
        return None
    packing = m.packing
    strides = dense(packing.dims)
    inside = [strides[p] for p in packing.perm]
    first = packing.batch + packing.k
    lie = [
        (step, extent)
        for step, extent in zip(inside[first:], packing.permuted[first:], strict=True)
        if extent != 1
    ]
    if not all(known_equal(outer[0], inner[0] * inner[1]) for outer, inner in pairwise(lie)):
        return None
    k_step = inside[packing.batch] if packing.k else 1
    together = k_step == 1 and m.k[0][1] == 1
    n_step = lie[-1][0] if lie else (0 if together else 1)
    if n_step != 1 and not together:
        return None
    batch = (replace(x, b_stride=step) for x, step in zip(m.batch, inside, strict=False))
    return Match(replace(m, batch=tuple(batch)), (k_step, n_step))


def _few(m: contract.Match) -> bool:
    rows = [row.extent for row in m.rows]
    known = [extent for extent in rows if isinstance(extent, int)]
    return len(known) == len(rows) and 0 < prod(known) <= MOST_ROWS


DTYPES = frozenset({"f32"})
MATCHERS = {"cuvil.contract": _match}


def reads_in_place(m: Match, value: Value) -> bool:
    """Rows are read by strides where the terms of their sums need not lie together."""
    return value is not m.product.b and m.steps[1] == 1


def writes_in_place(m: Match) -> bool:
    """As a contraction."""
    return contract.writes_in_place(m.product)


def build(draft: Draft, name: str, m: Match) -> Kernel:
    """The product with what is fused behind it; raises ReadsBack as a contraction's does."""
    spec, block = contract.walked(draft, m.product)
    ((extent, a_step),) = m.product.k
    spec |= {"k": (extent, a_step), "steps": m.steps}
    reads = [draft.reads[value] for value in (m.product.a, m.product.b)]
    behind = epilogue_inputs(draft.group, draft.pool)
    extra = [v for value, v in draft.reads.items() if value in behind]
    result = draft.writes[draft.group.root.results[0]]
    draft.block.add_op(template_op("few_rows", spec, [*reads, result, *extra], block))
    return draft.finish(name, 0)
