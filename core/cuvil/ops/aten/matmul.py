"""Matrix products."""

from __future__ import annotations

import numpy as np

from cuvil.ir.dims import Dim
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value, cast
from cuvil.ops.aten.registry import aten
from cuvil.ops.aten.views import at, part
from cuvil.ops.compose.helpers import unsqueezed
from cuvil.ops.compose.matmul import matmul_of


@aten("mm", "bmm", "mv", "dot", "vdot", "matmul")
def matmul(cx: Cx, a: Value, b: Value) -> Value:
    """numpy's matmul."""
    if cx.result.dtype.name == "bool":
        cx.fail("a product of bool matrices")
    return matmul_of(cx, a, b)


def _sum(cx: Cx, bias: Value, product: Value, beta: Value, alpha: Value) -> Value:
    """beta * bias + alpha * product."""
    kind = cx.result.dtype.name
    if alpha != 1:
        product = cx.b.mul(product, as_value(cx, alpha, kind))
    if beta == 0:
        return product
    if beta != 1:
        bias = cx.b.mul(bias, as_value(cx, beta, kind))
    return cx.b.add(product, bias)


@aten("addmm", "baddbmm", "addmv")
def addmm(cx: Cx, bias: Value, a: Value, b: Value, *, beta: Value = 1, alpha: Value = 1) -> Value:
    """beta * bias + alpha * (a @ b)."""
    return _sum(cx, bias, matmul(cx, a, b), beta, alpha)


@aten("linear")
def linear(cx: Cx, x: Value, weight: Value, bias: Value = None) -> Value:
    """x @ weight.T + bias."""
    if cx.type(weight).rank < 2:
        found = matmul(cx, x, weight)
    else:
        found = matmul(cx, x, cx.b.transpose(weight, perm=(1, 0)))
    return found if bias is None else cx.b.add(found, bias)


@aten("_grouped_mm", "transformers.grouped_mm_fallback.default")
def grouped_mm(
    cx: Cx, x: Value, weight: Value, offs: Value = None, bias: Value = None, **_: Value
) -> Value:
    """Rows of x [T, K] by the matrix of their group, weight [E, K, N]; offs: where groups end.

    A group has as many rows as a run finds. Rows behind the last group give zeros.
    """
    groups = cx.dims(weight)[0]
    if offs is None or bias is not None or cx.type(x).rank != 2 or cx.type(weight).rank != 3:
        cx.fail("groups other than of rows")
    if not isinstance(groups, int):
        cx.fail(f"{groups} groups")
    b, rows, ends = cx.b, cx.dims(x)[0], cast(cx, offs, "i64")
    first: Dim = 0
    before, parts = b.scalar(0, "i64"), []
    for k in range(groups):
        end = at(cx, ends, 0, k)
        size = cx.bind(b.sub(end, before), "group", rows)
        one = part(cx, x, 0, first, size)
        parts.append(b.contract(one, at(cx, weight, 0, k), spec="mk,kn->mn"))
        first, before = first + size, end
    rest = b.broadcast(b.scalar(0, parts[0]), dims=(rows - first, cx.dims(weight)[2]))
    return cast(cx, b.concat(*parts, rest, axis=0), cx.result.dtype.name)


@aten("addbmm")
def addbmm(cx: Cx, bias: Value, a: Value, b: Value, *, beta: Value = 1, alpha: Value = 1) -> Value:
    """beta * bias + alpha * the sum of the products of a batch."""
    found = cx.b.contract(a, b, spec="bmk,bkn->bmn")
    found = cx.b.reduce(found, kind="sum", axes=(0,))
    return _sum(cx, bias, found, beta, alpha)


@aten("_cdist_forward")
def cdist(cx: Cx, x: Value, y: Value, p: float, compute_mode: Value = None) -> Value:
    """The p-norm of the difference of every row of x and every row of y."""
    b = cx.b
    x = b.reshape(x, dims=(*cx.dims(x)[:-1], 1, cx.dims(x)[-1]))
    y = b.reshape(y, dims=(*cx.dims(y)[:-2], 1, *cx.dims(y)[-2:]))
    return norm_of(cx, b.abs(b.sub(x, y)), p)


def norm_of(cx: Cx, apart: Value, p: float) -> Value:
    """The p-norm of the last axis of numbers that are not negative."""
    b, axes = cx.b, (cx.type(apart).rank - 1,)
    if p in (float("inf"), 1):
        return b.reduce(apart, kind="sum" if p == 1 else "max", axes=axes)
    if p == 0:
        differ = b.cast(b.ne(apart, b.scalar(0, apart)), to=cx.result.dtype.name)
        return b.reduce(differ, kind="sum", axes=axes)
    if p == 2:
        return b.sqrt(b.reduce(b.mul(apart, apart), kind="sum", axes=axes))
    total = b.reduce(b.pow(apart, b.scalar(p, apart)), kind="sum", axes=axes)
    return b.pow(total, b.scalar(1 / p, total))


@aten("_pdist_forward")
def pdist(cx: Cx, x: Value, p: float = 2) -> Value:
    """The p-norm of the difference of every two rows, the first with all others first."""
    rows = cx.dims(x)[0]
    if not isinstance(rows, int):
        cx.fail(f"pairs of {rows} rows")
    first, second = (cx.b.const(k.astype(np.int64)) for k in np.triu_indices(rows, 1))
    apart = cx.b.sub(cx.b.gather(x, first, axis=0), cx.b.gather(x, second, axis=0))
    return norm_of(cx, cx.b.abs(apart), p)


@aten("_linalg_det")
def determinant(cx: Cx, x: Value) -> tuple[Value, Value, Value]:
    """The determinant of every matrix, without its factors."""
    if cx.used(1) or cx.used(2):
        cx.fail("the factors of a determinant")
    return cx.b.determinant(x), None, None


@aten("_trilinear")
def trilinear(
    cx: Cx,
    x: Value,
    y: Value,
    z: Value,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Value:
    """The sum over some axes of a product of three tensors with axes put in."""
    parts = [unsqueezed(cx, v, axes) for v, axes in ((x, expand1), (y, expand2), (z, expand3))]
    product = cx.b.mul(cx.b.mul(parts[0], parts[2]), parts[1])
    return cx.b.reduce(product, kind="sum", axes=sumdim)
