"""Matrix products."""

from __future__ import annotations

from string import ascii_lowercase

from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]


def matmul_of(cx: Cx, a: Value, b: Value) -> Value:
    """numpy's matmul: vectors gain an axis and lose it again, batch axes broadcast."""
    ranks = cx.type(a).rank, cx.type(b).rank
    if 0 in ranks:
        cx.bad("takes no rank-0 operand")
    left, right = "mk" if ranks[0] > 1 else "k", "kn" if ranks[1] > 1 else "k"
    count = max(ranks[0] - 2, ranks[1] - 2, 0)
    free = [c for c in ascii_lowercase if c not in "mkn"]
    if count > len(free):
        cx.fail(f"{count} batch axes are too many")
    batch = "".join(free[:count])
    x, own = _batched(cx, a, b, batch)
    y, other = _batched(cx, b, a, batch)
    tail = left.strip("k") + right.strip("k")
    return cx.b.contract(x, y, spec=f"{own}{left},{other}{right}->{batch}{tail}")


def _batched(cx: Cx, x: Value, other: Value, batch: str) -> tuple[Value, str]:
    """An operand without the batch axes that it repeats along, and the letters of the others."""
    own, matrix = cx.dims(x)[:-2], cx.dims(x)[-2:]
    theirs = (1,) * len(own) + cx.dims(other)[:-2]
    letters, opposite = batch[len(batch) - len(own) :], theirs[len(theirs) - len(own) :]
    kept = [(c, d) for c, d, o in zip(letters, own, opposite, strict=True) if d != 1 or o == 1]
    chosen = "".join(c for c, _ in kept)
    if len(kept) == len(own):
        return x, chosen
    return cx.b.reshape(x, dims=[*(d for _, d in kept), *matrix]), chosen


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
