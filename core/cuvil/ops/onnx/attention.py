"""Attention and rotary embeddings."""

from __future__ import annotations

import math

from cuvil.ops.compose.attention import repeated_heads
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("Attention", since=23)
def attention(
    cx: Cx,
    q: Value,
    k: Value,
    v: Value,
    mask: Value = None,
    past_k: Value = None,
    past_v: Value = None,
    lengths: Value = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> Value | tuple[Value, ...]:
    """The common form as one primitive; everything else by ONNX's own function body.

    Common: no soft cap, lengths, window or score output; no mask, or one of floats; causal only
    without a past.
    """
    boolean = mask is not None and cx.type(mask).dtype.name == "bool"
    other = softcap or lengths is not None or any(cx.outputs[3:])
    other = other or max(left_window_size, right_window_size) >= 0
    if other or boolean or (is_causal and past_k is not None):
        return NotImplemented
    flat = cx.type(q).rank == 3
    if scale is None and not isinstance(cx.dims(q)[-1], int):
        return NotImplemented
    if flat:
        if not q_num_heads or not kv_num_heads:
            cx.bad("operands of rank 3 need q_num_heads and kv_num_heads")
        q, k, v = (
            _heads(cx, x, n) for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
        )
    if past_k is not None and past_v is not None:
        k, v = cx.b.concat(past_k, k, axis=2), cx.b.concat(past_v, v, axis=2)
    present = (k, v)
    k, v = (repeated_heads(cx, x, cx.dims(q)[1]) for x in (k, v))
    factor = scale if scale is not None else 1 / math.sqrt(_width(cx, q))
    operands = [q, k, v] if mask is None else [q, k, v, mask]
    y = cx.b.attention(*operands, scale=factor, causal=bool(is_causal))
    if flat:
        y = cx.b.transpose(y, perm=(0, 2, 1, 3))
        y = cx.b.reshape(y, dims=(*cx.dims(y)[:2], cx.dims(y)[2] * cx.dims(y)[3]))
    return y, *present


def _heads(cx: Cx, x: Value, count: int) -> Value:
    """[B, S, N * D] as [B, N, S, D]."""
    batch, steps, width = cx.dims(x)
    if isinstance(width, int) and width % count:
        cx.bad(f"width {width} does not divide into {count} heads")
    split = cx.b.reshape(x, dims=(batch, steps, count, width // count))
    return cx.b.transpose(split, perm=(0, 2, 1, 3))


def _width(cx: Cx, q: Value) -> int:
    width = cx.dims(q)[-1]
    if not isinstance(width, int) or width == 0:
        cx.bad("heads have no elements")
    return width
