"""Matrix products."""

from __future__ import annotations

from cuvil.ops.compose.matmul import matmul_of
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]


@onnx_op("MatMul")
def matmul(cx: Cx, a: Value, b: Value) -> Value:
    """numpy's matmul."""
    return matmul_of(cx, a, b)


@onnx_op("Gemm", since=7)
def gemm(
    cx: Cx,
    a: Value,
    b: Value,
    c: Value = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's own names
    transB: int = 0,  # noqa: N803
) -> Value:
    """alpha * A @ B + beta * C, either matrix transposed if asked."""
    spec = f"{'km' if transA else 'mk'},{'nk' if transB else 'kn'}->mn"
    result = cx.b.contract(a, b, spec=spec)
    if alpha != 1:
        result = cx.b.mul(result, cx.b.scalar(alpha, result))
    if c is None or beta == 0:
        return result
    return cx.b.add(result, c if beta == 1 else cx.b.mul(c, cx.b.scalar(beta, c)))


@onnx_op("Gemm")
def gemm_legacy(
    cx: Cx,
    a: Value,
    b: Value,
    c: Value,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Value:
    """Before opset 7 broadcasting was asked for."""
    return gemm(cx, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
