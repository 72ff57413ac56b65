"""Scaled dot-product attention as one op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil.ir.attrs import Attr, Attrs
from cuvil.ir.dims import Dim, broadcast_dim
from cuvil.ir.names import Value
from cuvil.ir.nest_build import Index
from cuvil.ir.record import Primitive
from cuvil.ir.types import TensorType, shapes
from cuvil.ops.elementwise import broadcast_dims
from cuvil.ops.lowering import KernelCx, Scratch, broadcast_index, for_each, loops, wide


def _infer(t: Sequence[TensorType], a: Attrs) -> list[TensorType]:
    if len(t) not in (3, 4) or min(x.rank for x in t[:3]) < 2 or not t[0].dtype.is_float:
        raise ValueError(f"attention does not take {shapes(t)}")
    q, k, v = t[:3]
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"attention: q, k and v are {shapes(t[:3])}")
    for what, x, y in (("D", q.dims[-1], k.dims[-1]), ("N", k.dims[-2], v.dims[-2])):
        if isinstance(x, int) and isinstance(y, int) and x != y:
            raise ValueError(f"attention: {what} is {x} and {y} in {shapes(t[:3])}")
    batch = broadcast_dims(q.dims[:-2], k.dims[:-2], v.dims[:-2])
    if len(t) == 4:
        _check_mask(t[3], q, (*batch, q.dims[-2], k.dims[-2]))
    return [q.with_dims((*batch, q.dims[-2], v.dims[-1]))]


def _check_mask(mask: TensorType, q: TensorType, scores: Sequence[Dim]) -> None:
    if mask.dtype.kind != "bool" and mask.dtype != q.dtype:
        raise ValueError(f"attention: a mask of {mask.dtype.name} for {q.dtype.name}")
    if mask.rank > len(scores):
        raise ValueError(f"attention: mask {shapes([mask])} is of higher rank than the scores")
    for d, s in zip(mask.dims[::-1], reversed(scores), strict=False):
        if d != 1 and broadcast_dim(d, s) != s and isinstance(s, int):
            raise ValueError(f"attention: mask {shapes([mask])} does not fit the scores")


def _evaluate(x: Sequence[Any], a: Attrs) -> list[Any]:
    q, k, v = (wide(t) for t in x[:3])
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * q.dtype.type(a.scale)
    if len(x) > 3 and x[3].dtype == bool:
        scores = np.where(x[3], scores, q.dtype.type(-np.inf))
    elif len(x) > 3:
        scores = scores + wide(x[3])
    if a.causal:
        past = np.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
        scores = np.where(past, scores, q.dtype.type(-np.inf))
    e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return [np.matmul(e / e.sum(-1, keepdims=True), v).astype(x[0].dtype)]


def _kernel(cx: KernelCx) -> None:
    """A task per query: scores in scratch, their softmax, and the weighted sum of the values."""
    b, dims, name = cx.b, cx.result_type.dims, cx.result_type.dtype.compute.name
    *batch, row = at = cx.tasks(dims[:-1])
    keys = cx.operand_types[1].dims[-2]
    limit: Index = b.dim(keys)
    if cx.attrs.causal:
        limit = b.index("min", limit, b.add(row, 1))
    scores, sums = cx.scratch(keys, name), cx.scratch(dims[-1], name)
    with b.loop(0, limit, [b.const(float("-inf"), name)]) as loop:
        score = _score(cx, batch, row, loop.iv)
        scores.store(score, loop.iv)
        loop.yield_(b.scalar("max", loop.args[0], score))
    (best,) = loop.results
    with b.loop(0, limit, [b.const(0, name)], kind="reduce") as loop:
        e = b.scalar("exp", b.scalar("sub", scores.load(loop.iv), best))
        scores.store(e, loop.iv)
        loop.yield_(b.scalar("add", loop.args[0], e))
    inverse = b.scalar("reciprocal", loop.results[0])
    _mix(cx, batch, (scores, sums), limit, inverse)
    for_each(b, dims[-1:], lambda i: cx.store(_result(cx, sums, i[0]), [*at, *i]))


def _result(cx: KernelCx, sums: Scratch, i: Index) -> Value:
    return cx.b.cast(sums.load(i), cx.result_type.dtype.name)


def _score(cx: KernelCx, batch: Sequence[Index], row: Index, key: Index) -> Value:
    b, name = cx.b, cx.result_type.dtype.compute.name

    def step(d: tuple[Index, ...], total: Value) -> Sequence[Value]:
        q, k = (b.cast(_operand(cx, i, batch, [at, *d]), name) for i, at in enumerate((row, key)))
        return [b.scalar("add", total, b.scalar("mul", q, k))]

    (dot,) = loops(b, cx.operand_types[0].dims[-1:], [b.const(0, name)], step)
    score = b.scalar("mul", dot, b.const(cx.attrs.scale, name))
    if len(cx.operand_types) == 3:
        return score
    mask = _mask(cx, [*batch, row, key])
    if cx.operand_types[3].dtype.kind == "bool":
        return b.scalar("select", mask, score, b.const(float("-inf"), name), result=name)
    return b.scalar("add", score, b.cast(mask, name))


def _mask(cx: KernelCx, index: Sequence[Index]) -> Value:
    q, k = cx.operand_types[:2]
    scores = (*cx.result_type.dims[:-2], q.dims[-2], k.dims[-2])
    return cx.operand(3, broadcast_index(index, cx.operand_types[3].dims, scores))


def _operand(cx: KernelCx, i: int, batch: Sequence[Index], inner: Sequence[Index]) -> Value:
    """An element of q, k or v, whose leading dims broadcast."""
    dims = cx.operand_types[i].dims[:-2]
    return cx.operand(i, [*broadcast_index(batch, dims, cx.result_type.dims[:-2]), *inner])


def _mix(
    cx: KernelCx,
    batch: Sequence[Index],
    scratch: tuple[Scratch, Scratch],
    limit: Index,
    inverse: Value,
) -> None:
    """The sum of the value rows, each scaled by its weight; rows of values are contiguous."""
    b, name, (scores, sums) = cx.b, cx.result_type.dtype.compute.name, scratch
    width = b.dim(cx.result_type.dims[-1])
    with b.loop(0, width, kind="parallel") as loop:
        sums.store(b.const(0, name), loop.iv)
    with b.loop(0, limit) as keys:
        weight = b.scalar("mul", scores.load(keys.iv), inverse)
        with b.loop(0, width, kind="parallel") as loop:
            value = b.cast(_operand(cx, 2, batch, [keys.iv, loop.iv]), name)
            part = b.scalar("mul", weight, value)
            sums.store(b.scalar("add", sums.load(loop.iv), part), loop.iv)


ATTENTION = Primitive(
    # softmax(q k^T * scale + mask) v for q [.., M, D], k [.., N, D], v [.., N, E]; the mask is
    # added, or bool: False is -inf; causal: query i sees keys 0 .. i. Where all is masked: NaN.
    name="attention",
    infer=_infer,
    evaluate=_evaluate,
    attrs={"scale": Attr("float"), "causal": Attr("bool", False)},
    kernel=_kernel,
    tags=frozenset({"anchor"}),
    tolerance=1e-4,
).register()
