"""Reductions, softmax and matrix products at every version of theirs."""

from __future__ import annotations

import numpy as np
from onnx_models import f32, i64
from opset_example import Examples

A = f32(range(1, 25)).reshape(2, 3, 4) / 8

EXAMPLES = Examples()
node = EXAMPLES.node


def _log_sum_exp(x, **kw):
    return np.log(np.exp(x).sum(**kw))


REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceProd": np.prod,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceL1": lambda x, **kw: np.abs(x).sum(**kw),
    "ReduceL2": lambda x, **kw: np.sqrt((x * x).sum(**kw)),
    "ReduceLogSum": lambda x, **kw: np.log(x.sum(**kw)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, **kw: (x * x).sum(**kw),
}

# Axes are an attribute before opset 18 (13 for ReduceSum), negative ones from 11 on; then an input.
for name, function in REDUCTIONS.items():
    last = {"ReduceMax": (18, 20), "ReduceMin": (18, 20), "ReduceSum": (13,),
            "ReduceLogSum": (18, 28), "ReduceLogSumExp": (18, 28)}.get(name, (18,))  # fmt: skip
    first = {"ReduceMax": (11, 12, 13), "ReduceMin": (11, 12, 13), "ReduceSum": (11,)}
    by_attribute = first.get(name, (11, 13))
    node(name, (1, *by_attribute), [A], function(A, axis=(0, 2), keepdims=True), axes=[0, 2])
    node(name, (1, *by_attribute), [A], function(A, axis=1), axes=[1], keepdims=0)
    node(name, (1, *by_attribute, *last), [A], function(A, keepdims=True))
    node(name, (1, *by_attribute, *last), [A], function(A), keepdims=0)
    node(name, by_attribute, [A], function(A, axis=2), axes=[-1], keepdims=0)
    node(name, last, [A, [-1, 0]], function(A, axis=(0, 2), keepdims=True), fix=[1])
    node(name, last, [A, i64([])], A if name in ("ReduceSum", "ReduceMean") else
         function(A[None], axis=0), fix=[1], noop_with_empty_axes=1)  # fmt: skip
BYTES = np.array([[3, -5], [7, 2]], np.int8)
node("ReduceMax", (12, 13), [BYTES], np.array([3, 7], np.int8), axes=[1], keepdims=0)
node("ReduceMin", (12, 13), [BYTES], np.array([-5, 2], np.int8), axes=[1], keepdims=0)
FLAGS = np.array([[True, False], [True, True]])
node("ReduceMax", (20,), [FLAGS, [1]], FLAGS.any(1), fix=[1], keepdims=0)
node("ReduceMin", (20,), [FLAGS, [1]], FLAGS.all(1), fix=[1], keepdims=0)

# ArgMax and ArgMin: negative axes from 11 on, the last of equals on request from 12 on.
TIES = f32([[2, 1, 2], [1, 3, 1]])
for name, first, last in (("ArgMax", [0, 1], [2, 1]), ("ArgMin", [1, 0], [1, 2])):
    node(name, (1, 11, 12, 13), [TIES], i64(first)[:, None], axis=1)
    node(name, (1, 11, 12, 13), [TIES], i64(first), axis=1, keepdims=0)
    node(name, (11, 12, 13), [TIES], i64(first), axis=-1, keepdims=0)
    node(name, (12, 13), [TIES], i64(last), axis=1, keepdims=0, select_last_index=1)
node("ArgMax", (1, 11, 12, 13), [TIES], i64([[0, 1, 0]]))

node("CumSum", (11, 14), [A, i64(-1)], A.cumsum(2), fix=[1])
node("CumSum", (11, 14), [A, i64(1)], A[:, ::-1].cumsum(1)[:, ::-1], fix=[1], reverse=1)


def _soft(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def _hard(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """1 at the first greatest element over these axes, which are the last ones, or one axis."""
    moved = x.reshape(*x.shape[: axes[0]], -1) if len(axes) > 1 else np.moveaxis(x, axes[0], -1)
    hot = np.eye(moved.shape[-1], dtype=np.float32)[moved.argmax(-1)]
    return hot.reshape(x.shape) if len(axes) > 1 else np.moveaxis(hot, -1, axes[0])


# Softmax: over all axes from `axis` (by default 1) on, before opset 13; then over one axis.
for name, function in (
    ("Softmax", _soft), ("LogSoftmax", lambda x, axes: np.log(_soft(x, axes))), ("Hardmax", _hard),
):  # fmt: skip
    node(name, (1, 11), [A], function(A, (1, 2)))
    node(name, (1, 11), [A], function(A, (0, 1, 2)), axis=0)
    node(name, (1, 11), [A], function(A, (2,)), axis=2)
    node(name, (11,), [A], function(A, (1, 2)), axis=-2)
    node(name, (13,), [A], function(A, (2,)))
    node(name, (13,), [A], function(A, (1,)), axis=1)

# Gemm: C has to be there before opset 11, and broadcasts only if asked before 7.
M, K, C = A[0], A[1].T, f32([[1, 2, 3]])
node("Gemm", (1, 6), [M, K, M @ K], 0.5 * M @ K + 2 * (M @ K), alpha=0.5, beta=2.0)
node("Gemm", (1, 6), [M, K, C[0]], M @ K + C, broadcast=1)
node("Gemm", (1, 6), [M.T, K.T, C.T], M @ K + C.T, broadcast=1, transA=1, transB=1)
node("Gemm", (7, 9, 11, 13), [M, K, C[0]], M @ K + C)
node("Gemm", (11, 13), [M, K], M @ K)
WHOLE = np.array([[1, 2], [3, 4]], np.int32)
node("Gemm", (9, 11, 13), [WHOLE, WHOLE, WHOLE], WHOLE @ WHOLE + WHOLE)
node("MatMul", (1, 9, 13), [A, A[0].T], A @ A[0].T)
node("MatMul", (9, 13), [WHOLE, WHOLE], WHOLE @ WHOLE)
node("Einsum", (12, 28), [A, A[0]], np.einsum("bij,kj->bki", A, A[0]), equation="bij,kj->bki")
SQUARE = f32([[[2, 1], [1, 3]], [[0, 1], [1, 0]]])
node("Det", (11, 22), [SQUARE], f32([5, -1]))
