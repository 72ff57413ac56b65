"""Scaled dot-product attention as one op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, broadcast_dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.lowering import KernelCx, Scratch, for_each, loops, wide

_BATCH = "abcdefghijklmnopqrstuv"


class Letters(NamedTuple):
    """The axes of an attention by letters; see `ATTENTION`. batch: in the result's order."""

    q: str
    k: str
    v: str
    mask: str
    out: str
    batch: str
    row: str
    key: str
    width: str
    column: str

    @property
    def operands(self) -> tuple[str, str, str, str]:
        """The letters of every operand; a missing mask has none."""
        return self.q, self.k, self.v, self.mask


def letters_of(spec: str, ranks: Sequence[int]) -> Letters:
    """Reads `ambk,anbk,anbe,abmn->ambe`; "" stands for the usual order at these operand ranks.

    ValueError where the letters do not make an attention.
    """
    operands, _, out = (spec or _usual(ranks)).partition("->")
    q, k, v, *rest = (*operands.split(","), "") if len(ranks) < 4 else operands.split(",")
    if len(rest) != 1 or [len(x) for x in (q, k, v, *rest)][: len(ranks)] != list(ranks):
        raise ValueError(f"attention: '{spec}' does not fit operands of ranks {list(ranks)}")
    alone = [c for c in out if c in q and c not in k + v]
    width = "".join(c for c in q if c in k and c not in v + out)
    key = "".join(c for c in k if c in v and c not in q + out)
    column = "".join(c for c in v if c in out and c not in q + k)
    row = "".join(alone[-1:])
    batch = "".join(c for c in out if c not in row + column)
    found = Letters(q, k, v, rest[0], out, batch, row, key, width, column)
    if not _fit(found):
        raise ValueError(f"attention: '{spec}' is not of the form 'bmk,bnk,bne,bmn->bme'")
    return found


def _fit(x: Letters) -> bool:
    allowed = (
        (x.q, x.batch + x.row + x.width),
        (x.k, x.batch + x.key + x.width),
        (x.v, x.batch + x.key + x.column),
        (x.mask, x.batch + x.row + x.key),
    )
    if not len(x.row) == len(x.key) == len(x.width) == len(x.column) == 1:
        return False
    once = all(len(set(part)) == len(part) for part in (*x.operands, x.out))
    return once and all(set(part) <= set(letters) for part, letters in allowed)


def _usual(ranks: Sequence[int]) -> str:
    """[.., M, D], [.., N, D], [.., N, E], [.., M, N] -> [.., M, E]."""
    if min(ranks[:3], default=0) < 2 or len(ranks) < 3:
        raise ValueError(f"attention: operands of ranks {list(ranks)}")
    count = max(ranks[:3]) - 2
    if len(ranks) > 3 and ranks[3] > count + 2:
        raise ValueError(f"attention: a mask of rank {ranks[3]} is of higher rank than the scores")
    batch = _BATCH[:count]
    whole = (f"{batch}wx", f"{batch}yx", f"{batch}yz", f"{batch}wy")
    parts = [part[len(part) - rank :] for part, rank in zip(whole, ranks, strict=False)]
    return f"{','.join(parts)}->{batch}wz"


def extents_of(letters: Letters, t: Sequence[TensorType]) -> dict[str, Dim]:
    """The extent of every letter. ValueError where operands do not fit."""
    found: dict[str, Dim] = {}
    for part, kind in zip(letters.operands[:3], t, strict=False):
        for c, dim in zip(part, kind.dims, strict=True):
            known = found.setdefault(c, dim)
            if c in letters.batch:
                found[c] = broadcast_dim(known, dim)
            elif isinstance(known, int) and isinstance(dim, int) and known != dim:
                raise ValueError(f"attention: '{c}' is {known} and {dim} in {shapes(t[:3])}")
    return found


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) not in (3, 4) or not t[0].dtype.is_float:
        raise ValueError(f"attention does not take {shapes(t)}")
    if not t[0].dtype == t[1].dtype == t[2].dtype:
        raise ValueError(f"attention: q, k and v are {shapes(t[:3])}")
    letters = letters_of(a.spec, [x.rank for x in t])
    extents = extents_of(letters, t)
    if len(t) == 4:
        _check_mask(t[3], t[0], [extents[c] for c in letters.mask])
    return [t[0].with_dims([extents[c] for c in letters.out])]


def _check_mask(mask: TensorType, q: TensorType, scores: Sequence[Dim]) -> None:
    if mask.dtype.kind != "bool" and mask.dtype != q.dtype:
        raise ValueError(f"attention: a mask of {mask.dtype.name} for {q.dtype.name}")
    for d, s in zip(mask.dims, scores, strict=True):
        if d != 1 and broadcast_dim(d, s) != s and isinstance(s, int):
            raise ValueError(f"attention: mask {shapes([mask])} does not fit the scores")


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    letters = letters_of(a.spec, [t.ndim for t in x])
    batch, row, key = letters.batch, letters.row, letters.key
    q = _aligned(wide(x[0]), letters.q, batch + row + letters.width)
    k = _aligned(wide(x[1]), letters.k, batch + letters.width + key)
    v = _aligned(wide(x[2]), letters.v, batch + key + letters.column)
    scores = np.matmul(q, k) * q.dtype.type(a.scale)
    if len(x) > 3:
        mask = _aligned(wide(x[3]), letters.mask, batch + row + key)
        scores = (
            np.where(mask, scores, q.dtype.type(a.fill)) if mask.dtype == bool else scores + mask
        )
    if a.causal:
        past = np.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
        scores = np.where(past, scores, q.dtype.type(-np.inf))
    e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    result = np.matmul(e / e.sum(-1, keepdims=True), v).astype(x[0].dtype)
    order = batch + row + letters.column
    return [result.transpose([order.index(c) for c in letters.out])]


def _aligned(array: Any, letters: str, order: str) -> Any:
    """The axes of an array in another order, with extents of 1 for letters that it lacks."""
    moved = array.transpose([letters.index(c) for c in order if c in letters])
    return np.expand_dims(moved, tuple(i for i, c in enumerate(order) if c not in letters))


def _kernel(cx: KernelCx) -> None:
    """A task per query: scores in scratch, their softmax, and the weighted sum of the values."""
    b, name = cx.b, cx.result_type.dtype.compute.name
    letters = letters_of(cx.attrs.spec, [t.rank for t in cx.operand_types])
    extents = extents_of(letters, cx.operand_types)
    outer = [c for c in letters.out if c != letters.column]
    at = dict(zip(outer, cx.tasks([extents[c] for c in outer]), strict=True))
    keys, columns = extents[letters.key], extents[letters.column]
    limit: Index = b.dim(keys)
    if cx.attrs.causal:
        limit = b.index("min", limit, b.add(at[letters.row], 1))
    scores, sums = cx.scratch(keys, name), cx.scratch(columns, name)
    with b.loop(0, limit, [b.const(float("-inf"), name)]) as loop:
        score = _score(cx, letters, extents, at | {letters.key: loop.iv})
        scores.store(score, loop.iv)
        loop.yield_(b.scalar("max", loop.args[0], score))
    (best,) = loop.results
    with b.loop(0, limit, [b.const(0, name)], kind="reduce") as loop:
        e = b.scalar("exp", b.scalar("sub", scores.load(loop.iv), best))
        scores.store(e, loop.iv)
        loop.yield_(b.scalar("add", loop.args[0], e))
    inverse = b.scalar("reciprocal", loop.results[0])
    _mix(cx, letters, extents, at, (scores, sums), limit, inverse)

    def store(i: tuple[Index, ...]) -> None:
        place = at | {letters.column: i[0]}
        value = b.cast(sums.load(i[0]), cx.result_type.dtype.name)
        cx.store(value, [place[c] for c in letters.out])

    for_each(b, [columns], store)


def _score(
    cx: KernelCx, letters: Letters, extents: Mapping[str, Dim], at: Mapping[str, Index]
) -> Value:
    b, name = cx.b, cx.result_type.dtype.compute.name

    def step(d: tuple[Index, ...], total: Value) -> Sequence[Value]:
        place = {**at, letters.width: d[0]}
        q, k = (b.cast(_operand(cx, i, letters, extents, place), name) for i in (0, 1))
        return [b.scalar("add", total, b.scalar("mul", q, k))]

    (dot,) = loops(b, [extents[letters.width]], [b.const(0, name)], step)
    score = b.scalar("mul", dot, b.const(cx.attrs.scale, name))
    if len(cx.operand_types) == 3:
        return score
    mask = _operand(cx, 3, letters, extents, at)
    if cx.operand_types[3].dtype.kind == "bool":
        return b.scalar("select", mask, score, b.const(cx.attrs.fill, name), result=name)
    return b.scalar("add", score, b.cast(mask, name))


def _operand(
    cx: KernelCx,
    i: int,
    letters: Letters,
    extents: Mapping[str, Dim],
    at: Mapping[str, Index],
) -> Value:
    """An element of an operand, some of whose dims may broadcast."""
    pairs = zip(letters.operands[i], cx.operand_types[i].dims, strict=True)
    return cx.operand(i, [0 if d == 1 and extents[c] != 1 else at[c] for c, d in pairs])


def _mix(
    cx: KernelCx,
    letters: Letters,
    extents: Mapping[str, Dim],
    at: Mapping[str, Index],
    scratch: tuple[Scratch, Scratch],
    limit: Index,
    inverse: Value,
) -> None:
    """The sum of the value rows, each scaled by its weight; rows of values are contiguous."""
    b, name, (scores, sums) = cx.b, cx.result_type.dtype.compute.name, scratch
    width = b.dim(extents[letters.column])
    with b.loop(0, width, kind="parallel") as loop:
        sums.store(b.const(0, name), loop.iv)
    with b.loop(0, limit) as keys:
        weight = b.scalar("mul", scores.load(keys.iv), inverse)
        with b.loop(0, width, kind="parallel") as loop:
            place = {**at, letters.key: keys.iv, letters.column: loop.iv}
            value = b.cast(_operand(cx, 2, letters, extents, place), name)
            part = b.scalar("mul", weight, value)
            sums.store(b.scalar("add", sums.load(loop.iv), part), loop.iv)


ATTENTION = Primitive(
    # softmax(q k^T * scale, masked) v. spec names axes as einsum does ("" is the usual order
    # [.., M, D], [.., N, D], [.., N, E], mask [.., M, N]); extents of 1 broadcast. The mask is
    # added, or bool: False is `fill`; causal: query i sees keys 0 .. i. Where all scores are
    # -inf: NaN.
    name="attention",
    infer=_infer,
    evaluate=_evaluate,
    attrs={
        "scale": Attr("float"),
        "causal": Attr("bool", False),
        "spec": Attr("str", ""),
        "fill": Attr("float", float("-inf")),
    },
    kernel=_kernel,
    tags=frozenset({"anchor"}),
    tolerance=1e-4,
    computes=True,
).register()
