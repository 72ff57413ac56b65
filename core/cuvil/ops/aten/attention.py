"""Scaled dot-product attention."""

from __future__ import annotations

import math

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.registry import aten
from cuvil.ops.compose.attention import repeated_heads


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    cx: Cx,
    q: Value,
    k: Value,
    v: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value = None,
    scale: float | None = None,
) -> tuple[Value, Value]:
    """softmax(q @ k.T * scale + mask) @ v, without what a gradient would need."""
    if dropout_p:
        cx.fail("dropout of attention")
    if cx.used(1):
        cx.fail("the sums of exponentials as a result")
    width = cx.dims(q)[-1]
    if scale is None and not (isinstance(width, int) and width):
        cx.fail(f"heads of {width} elements")
    factor = scale if scale is not None else 1 / math.sqrt(float(width))  # type: ignore[arg-type]
    if cx.type(q).rank == 4:
        k, v = (repeated_heads(cx, x, cx.dims(q)[1]) for x in (k, v))
    operands = [q, k, v] if attn_mask is None else [q, k, v, attn_mask]
    return cx.b.attention(*operands, scale=factor, causal=is_causal), None
