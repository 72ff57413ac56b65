"""Attention as one template: no score is ever stored outside of the task that computes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.ir.nest_build import template_op
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.ops.attention import Letters, extents_of, letters_of
from cuvil.plan.kernel import Draft, Kernel, epilogue_inputs
from cuvil.plan.layout import Layouts
from cuvil.plan.templates.epilogue import epilogue

MOST = 512  # elements of a query or a value: the panels' scratch stays in L2
MASKS = {"": 0, "f32": 1, "bool": 2}


@dataclass(frozen=True)
class Match:
    """An attention with the stride of every letter in every tensor (0 where it is shared).

    seen: the mask, None without one.
    """

    letters: Letters
    extents: dict[str, Dim]
    q: dict[str, Dim]
    k: dict[str, Dim]
    v: dict[str, Dim]
    mask: dict[str, Dim]
    seen: Value | None


def _match(op: Operation, layouts: Layouts) -> Match | None:
    kinds = [tensor_type(v) for v in op.operands]
    if any(kind.dtype.name != "f32" for kind in kinds[:3]):
        return None
    letters = letters_of(attrs_of(op).spec, [kind.rank for kind in kinds])
    extents = extents_of(letters, kinds)
    if not all(_static(extents[c]) for c in (letters.width, letters.column)):
        return None
    q, k, v, *rest = (
        _strides(part, value, layouts)
        for part, value in zip(letters.operands, op.operands, strict=False)
    )
    mask = rest[0] if rest else {}
    contiguous = letters.v[-1] == letters.out[-1] == letters.column
    if not contiguous or mask.get(letters.row, 0) not in (0, 1):
        return None
    return Match(letters, extents, q, k, v, mask, op.operands[3] if rest else None)


def _static(extent: Dim) -> bool:
    return isinstance(extent, int) and 0 < extent <= MOST


def _strides(letters: str, value: Value, layouts: Layouts) -> dict[str, Dim]:
    dims, steps = tensor_type(value).dims, layouts.strides(value)
    return {c: 0 if dim == 1 else step for c, step, dim in zip(letters, steps, dims, strict=True)}


DTYPES = frozenset({"f32", "bool"})
MATCHERS = {"cuvil.attention": _match}


def reads_in_place(m: Match, value: Value) -> bool:
    """All but the columns of the values may lie apart, and the queries of a mask."""
    return value is not m.seen or m.letters.row not in m.letters.mask[:-1]


def writes_in_place(m: Match) -> bool:
    """Results are written anywhere; their columns are together."""
    return True


def build(draft: Draft, name: str, m: Match) -> Kernel:
    """The attention with what is fused behind it; the one row is the query."""
    anchor = draft.group.anchor
    assert anchor is not None
    attrs, result, x = attrs_of(anchor), draft.group.root.results[0], m.letters
    out = _strides(x.out, result, draft.layouts)
    tensors = (m.q, m.k, m.v, m.mask, out)
    batch = [(m.extents[c], *(t.get(c, 0) for t in tensors)) for c in x.batch]
    kind = tensor_type(anchor.operands[3]).dtype.name if len(anchor.operands) > 3 else ""
    spec: dict[str, list[Dim]] = {
        "batch": [size for row in batch for size in row],
        "queries": [m.extents[x.row], m.q[x.row], m.mask.get(x.row, 0), out[x.row]],
        "keys": [m.extents[x.key], m.k[x.key], m.v[x.key], m.mask.get(x.key, 0)],
        "width": [m.extents[x.width], m.q[x.width], m.k[x.width]],
        "columns": [m.extents[x.column]],
        "masked": [MASKS[kind], int(attrs.causal)],
        "numbers": [bits(attrs.scale), bits(attrs.fill)],
    }
    walked: list[int | None] = [x.out.index(c) for c in (*x.batch, x.row)]
    block = epilogue(draft, walked, len(x.out), None)
    behind = epilogue_inputs(draft.group, draft.pool)
    buffers = [draft.reads[v] for v in anchor.operands]
    buffers.insert(3, draft.writes[result])
    extra = [buffer for value, buffer in draft.reads.items() if value in behind]
    draft.block.add_op(template_op("attention", spec, [*buffers, *extra], block))
    return draft.finish(name, 0)


def bits(number: float) -> int:
    """The bit pattern of a number as f32: how a spec of sizes holds it."""
    return int(np.float32(number).view(np.uint32))


def number(pattern: int) -> float:
    """The inverse of `bits`."""
    return float(np.uint32(pattern).view(np.float32))
