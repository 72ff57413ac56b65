"""Keys and values that several heads of queries share."""

from __future__ import annotations

from typing import Any, NamedTuple

from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation, Value
from cuvil.ops.attention import letters_of
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, one_user, rank_of

_QKV = {"q": "[B, 6, S, 4] f32", "k": "[B, 2, T, 4] f32", "v": "[B, 2, T, 5] f32"}


def _repeated(b: Any, x: Value, times: int = 3) -> Value:
    batch, heads, steps, width = dims_of(x)
    apart = b.reshape(x, dims=(batch, heads, 1, steps, width))
    more = b.broadcast(apart, dims=(batch, heads, times, steps, width))
    result: Value = b.reshape(more, dims=(batch, heads * times, steps, width))
    return result


def _grouped(b: Any, q: Value, k: Value, v: Value, *mask: Value) -> Value:
    result: Value = b.attention(q, _repeated(b, k), _repeated(b, v), *mask, scale=0.5)
    return result


@rule(
    "attention",
    example=[
        case(_grouped, **_QKV),
        case(_grouped, **_QKV, mask="[B, 1, S, T] f32"),
        case(_grouped, **_QKV, mask="[6, S, T] bool"),
    ],
    near_miss=[
        case(
            lambda b, q, k, v: b.attention(q, _repeated(b, k), v, scale=0.5),
            q="[B, 6, S, 4] f32", k="[B, 2, T, 4] f32", v="[B, 6, T, 5] f32",
        ),
        case(
            lambda b, q, k, v: b.attention(q, k, v, scale=0.5),
            q="[B, 6, S, 4] f32", k="[B, 6, T, 4] f32", v="[B, 6, T, 5] f32",
        ),
    ],
    tolerance=1e-6,
)  # fmt: skip
def shared_heads(b: Rewriter, op: Operation) -> Value | None:
    """Keys and values that were repeated for a group of heads are read by the whole group."""
    letters = letters_of(attrs_of(op).spec, [rank_of(v) for v in op.operands])
    q, k, v = op.operands[:3]
    keys, values = _source(b, op, k), _source(b, op, v)
    if keys is None or values is None or keys.counts != values.counts:
        return None
    head = letters.k[keys.axis]
    if letters.v[values.axis] != head or head not in letters.q or head not in letters.out:
        return None
    if dims_of(q)[letters.q.index(head)] == 1:
        return None
    inner = next(c for c in "abcdefghijklmnopqrstuvwxyz" if c not in "".join(letters[:5]))
    both = head + inner
    operands = [_apart(b, q, letters.q.index(head), keys.counts), keys.value, values.value]
    parts = [part.replace(head, both) for part in letters.operands[:3]]
    for mask in op.operands[3:]:
        at = letters.mask.find(head)
        whole = at >= 0 and dims_of(mask)[at] != 1
        operands.append(_apart(b, mask, at, keys.counts) if whole else mask)
        parts.append(letters.mask.replace(head, both) if whole else letters.mask)
    spec = f"{','.join(parts)}->{letters.out.replace(head, both)}"
    result: Value = b.reshape(b.like(op, operands, spec=spec), dims=dims_of(op.results[0]))
    return result


class _Source(NamedTuple):
    """What was repeated, with an axis of 1 behind its heads; axis: of the heads. counts: heads,
    and how often each is repeated."""

    value: Value
    axis: int
    counts: tuple[Dim, Dim]


def _source(b: Rewriter, op: Operation, value: Value) -> _Source | None:
    """The value as a repetition of heads that only `op` reads."""
    merged = b.producer(value, "reshape")
    more = b.producer(merged.operands[0], "broadcast") if merged is not None else None
    if merged is None or more is None or one_user(value) is not op:
        return None
    source, dims = more.operands[0], dims_of(more.results[0])
    if rank_of(source) != len(dims):
        return None
    wider = [i for i, (d, e) in enumerate(zip(dims_of(source), dims, strict=True)) if d != e]
    if len(wider) != 1 or wider[0] == 0:
        return None
    axis = wider[0] - 1
    joined = (*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :])
    if dims_of(value) != joined:
        return None
    return _Source(source, axis, (dims[axis], dims[axis + 1]))


def _apart(b: Rewriter, value: Value, axis: int, counts: tuple[Dim, Dim]) -> Value:
    """The value with its heads as groups."""
    dims = dims_of(value)
    result: Value = b.reshape(value, dims=(*dims[:axis], *counts, *dims[axis + 1 :]))
    return result
