"""Heads of queries, keys and values that were computed together."""

from __future__ import annotations

from typing import Any

from cuvil.ir.dims import product
from cuvil.ir.names import Operation, Value
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, one_user, rank_of

_SPEC = "ambk,anbk,anbe->ambe"


def _split(b: Any, x: Value, start: int, width: int = 8) -> Value:
    """Columns start .. start + width of [B, S, 24] as heads of four."""
    batch, steps, _ = dims_of(x)
    part = b.slice(x, starts=(0, 0, start), steps=(1, 1, 1), dims=(batch, steps, width))
    result: Value = b.reshape(part, dims=(batch, steps, width // 4, 4))
    return result


def _third(b: Any, x: Value, nth: int) -> Value:
    """Part `nth` of [B, S, 3, H, D]."""
    batch, steps, _, heads, width = dims_of(x)
    starts, dims = (0, 0, nth, 0, 0), (batch, steps, 1, heads, width)
    part = b.slice(x, starts=starts, steps=(1,) * 5, dims=dims)
    result: Value = b.reshape(part, dims=(batch, steps, heads, width))
    return result


@rule(
    "attention",
    example=[
        case(
            lambda b, x: b.attention(*(_split(b, x, i) for i in (0, 8, 16)), scale=0.5, spec=_SPEC),
            x="[B, S, 24] f32",
        ),
        case(
            lambda b, x: b.attention(*(_third(b, x, i) for i in range(3)), scale=0.5, spec=_SPEC),
            x="[B, S, 3, 2, 4] f32",
        ),
    ],
    near_miss=[
        case(
            lambda b, x: b.attention(*(_split(b, x, i) for i in (2, 9, 11)), scale=0.5, spec=_SPEC),
            x="[B, S, 23] f32",
        ),
        case(
            lambda b, x: (
                (y := _split(b, x, 8)),
                b.attention(y, y, y, scale=0.5, spec=_SPEC),
                b.neg(y),
            ),
            x="[B, S, 24] f32",
        ),
    ],
    group="vectorize_matmul",
    tolerance=1e-6,
)
def heads_of_slice(b: Rewriter, op: Operation) -> Value | None:
    """A slice that is then split into heads is a slice of the heads: the kernel reads it where it
    lies."""
    operands = [_heads(b, value, op) if i < 3 else value for i, value in enumerate(op.operands)]
    if operands == list(op.operands):
        return None
    result: Value = b.like(op, operands)
    return result


def _heads(b: Rewriter, value: Value, user: Operation) -> Value:
    """The value as a slice of a reshape, where it is a reshape of a slice along one axis."""
    split = b.producer(value, "reshape")
    part = b.producer(split.operands[0], "slice") if split is not None else None
    if split is None or part is None or one_user(value) is not user:
        return value
    x, a, dims = part.operands[0], attrs_of(part), dims_of(value)
    cut = [i for i, (d, e) in enumerate(zip(a.dims, dims_of(x), strict=True)) if d != e]
    if len(cut) != 1 or any(s != 1 for s in a.steps):
        return value
    axis = cut[0]
    inner, tail = product(dims_of(x)[axis + 1 :]), product(dims[axis + 1 :])
    start, extent = a.starts[axis] * inner, dims_of(x)[axis] * inner
    if rank_of(value) <= axis or dims[:axis] != a.dims[:axis]:
        return value
    if not all(isinstance(d, int) for d in (start, extent, tail)) or not tail:
        return value
    if start % tail or extent % tail or dims[axis] * tail != a.dims[axis] * inner:
        return value
    whole = b.reshape(x, dims=(*dims[:axis], extent // tail, *dims[axis + 1 :]))
    starts = [0] * rank_of(value)
    starts[axis] = start // tail
    result: Value = b.slice(whole, starts=starts, steps=[1] * rank_of(value), dims=dims)
    return result
