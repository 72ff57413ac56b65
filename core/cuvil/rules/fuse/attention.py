"""Attention from its parts."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

from cuvil.ir.names import Operation, Value
from cuvil.ops.contract import parse
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import case, rule
from cuvil.rewrite.values import attrs_of, dims_of, dtype_of, one_user, rank_of
from cuvil.rules.fuse._scores import Scores, find_scores

_Q, _K, _V = "[B, S, 2, 4] f32", "[B, T, 2, 4] f32", "[B, T, 2, 6] f32"
_H = {"q": "[B, S, 2, 4] f16", "k": "[B, T, 2, 4] f16", "v": "[B, T, 2, 6] f16"}


def _parts(
    b: Any, q: Value, k: Value, v: Value, change: Any = lambda s: s, axis: int = 3
) -> tuple[Value, Value]:
    """The result, and the weights before they meet the values."""
    scores = change(b.contract(q, k, spec="ambk,anbk->abmn"))
    weights = b.softmax(scores, axis=axis)
    return b.contract(weights, v, spec="abmk,akbn->ambn"), weights


def _masked(b: Any, q: Value, k: Value, v: Value, mask: Value) -> Value:
    half = b.const(0.5, dtype="f32")
    return _parts(b, q, k, v, lambda s: b.add(b.mul(s, half), mask))[0]


def _selected(b: Any, q: Value, k: Value, v: Value, mask: Value) -> Value:
    low = b.const(-1e9, dtype="f32")
    return _parts(b, q, k, v, lambda s: b.select(mask, s, low))[0]


def _scaled(b: Any, q: Value, k: Value, v: Value) -> Value:
    number = b.const(2.0, dtype="f32")
    return _parts(b, b.mul(q, number), b.div(k, number), v)[0]


def _scaled_before_split(b: Any, q: Value, k: Value, v: Value) -> Value:
    scaled = b.mul(q, b.const(2.0, dtype="f32"))
    return _parts(b, b.reshape(scaled, dims=dims_of(v)), k, v)[0]


def _shared_keys(b: Any, q: Value, k: Value, v: Value) -> Value:
    weights = b.softmax(b.contract(k, q, spec="nk,hmk->hmn"), axis=2)
    result: Value = b.contract(v, weights, spec="nc,hmn->hmc")
    return result


@rule(
    "contract",
    example=[
        case(lambda b, q, k, v: _parts(b, q, k, v)[0], q=_Q, k=_K, v=_V),
        case(_masked, q=_Q, k=_K, v=_V, mask="[B, 1, S, T] f32"),
        case(_masked, q=_Q, k=_K, v=_V, mask="[1, T] f32"),
        case(_selected, q=_Q, k=_K, v=_V, mask="[B, 1, 1, T] bool"),
        case(_scaled, q=_Q, k=_K, v=_V),
        case(_scaled_before_split, q="[B, S, 12] f32", k="[B, S, 2, 6] f32", v="[B, S, 2, 6] f32"),
        case(_shared_keys, q="[2, M, 4] f32", k="[N, 4] f32", v="[N, 5] f32"),
    ],
    near_miss=[
        case(lambda b, q, k, v: _parts(b, q, k, v, axis=2)[0], q=_Q, k=_K, v=_V),
        case(_parts, q=_Q, k=_K, v=_V),
        case(lambda b, q, k, v: _parts(b, q, k, v, lambda s: b.mul(s, s))[0], q=_Q, k=_K, v=_V),
        case(lambda b, q, k, v: _parts(b, q, k, v)[0], **_H),
    ],
    tolerance=1e-5,
)  # fmt: skip
def attention(b: Rewriter, op: Operation) -> Value | None:
    """softmax(scale * q k^T, masked) v over the last axis of the scores is one op, where nothing
    else uses scores or weights."""
    for weights, values in (op.operands, op.operands[::-1]):
        softmax = b.producer(weights, "softmax")
        if softmax is None or one_user(weights) is not op or dtype_of(weights).name != "f32":
            continue
        if attrs_of(softmax).axis != rank_of(weights) - 1:
            continue
        scores = find_scores(b, softmax.operands[0], softmax)
        letters = _letters(op, scores, weights is op.operands[0]) if scores is not None else None
        if scores is not None and letters is not None and _fast(letters, scores, values):
            return _emit(b, letters, scores, values)
    return None


class _Letters(NamedTuple):
    """The letters of q, k, v, scores and result. turned: k is the first operand of the product."""

    q: str
    k: str
    v: str
    scores: str
    out: str
    turned: bool


def _letters(op: Operation, scores: Scores, first: bool) -> _Letters | None:
    """Both products in one set of letters. first: the weights are the first operand of `op`."""
    inner, outer = parse(scores.spec), parse(attrs_of(op).spec)
    theirs, values = (outer.a, outer.b) if first else (outer.b, outer.a)
    names = dict(zip(theirs, inner.out, strict=True))
    columns = [c for c in values if c not in theirs]
    key, used = inner.out[-1], inner.a + inner.b
    if len(columns) != 1 or len(inner.summed) != 1 or key in inner.batch:
        return None
    if len(outer.summed) != 1 or names.get(outer.summed) != key:
        return None
    names[columns[0]] = next(c for c in "zyxwvutsrqponmlkjihgfedcba" if c not in used)
    v, out = ("".join(names[c] for c in part) for part in (values, outer.out))
    q, k, turned = (inner.b, inner.a, True) if key in inner.a else (inner.a, inner.b, False)
    rows = [c for c in out if c in q and c not in k + v]
    if not rows or out[-1] != v[-1] or v[-1] != names[columns[0]]:
        return None
    return _Letters(q, k, v, inner.out, out, turned)


def _fast(letters: _Letters, scores: Scores, values: Value) -> bool:
    """Whether a kernel of its own takes it: the widths of queries and values are known."""
    width = next(c for c in letters.q if c in letters.k and c not in letters.out)
    q = scores.operands[letters.turned]
    known = dims_of(q)[letters.q.index(width)], dims_of(values)[-1]
    return all(isinstance(d, int) for d in known)


def _emit(b: Rewriter, letters: _Letters, scores: Scores, values: Value) -> Value:
    q, k = scores.operands[:: -1 if letters.turned else 1]
    heads = _heads(letters, q)
    k = b.reshape(k, dims=(*[1] * len(heads), *dims_of(k))) if heads else k
    operands, parts = [q, k, values], [letters.q, heads + letters.k, letters.v]
    mask = reduce(b.add, scores.added) if scores.added else scores.chosen
    if mask is not None:
        operands.append(mask)
        parts.append(letters.scores[len(letters.scores) - rank_of(mask) :])
    result: Value = b.attention(
        *operands,
        scale=scores.scale,
        fill=scores.fill,
        spec=f"{','.join(parts)}->{letters.out}",
    )
    return result


def _heads(letters: _Letters, q: Value) -> str:
    """Letters of q that are no queries though k and v lack them: heads that share their keys. They
    become axes of 1 of k. With one query each, they are walked as the queries are."""
    alone = [c for c in letters.out if c in letters.q and c not in letters.k + letters.v]
    row = letters.scores[-2]
    if row not in alone or dims_of(q)[letters.q.index(row)] == 1:
        return ""
    return "".join(c for c in alone if c != row)
