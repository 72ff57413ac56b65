"""Matrix products."""

from __future__ import annotations

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import as_value
from cuvil.ops.aten.registry import aten
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
