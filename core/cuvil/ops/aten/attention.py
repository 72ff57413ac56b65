"""Scaled dot-product attention."""

from __future__ import annotations

import math

from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.matmul import linear
from cuvil.ops.aten.registry import aten
from cuvil.ops.aten.views import at
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
    if cx.type(q).rank != 4:
        cx.fail(f"operands of rank {cx.type(q).rank}")
    k, v = (repeated_heads(cx, x, cx.dims(q)[1]) for x in (k, v))
    if attn_mask is None:
        return cx.b.attention(q, k, v, scale=factor, causal=is_causal), None
    letters = "abmn"[4 - cx.type(attn_mask).rank :]
    found = cx.b.attention(
        q, k, v, attn_mask, scale=factor, causal=is_causal,
        spec=f"abmk,abnk,abne,{letters}->ambe",
    )  # fmt: skip
    found = _without_hidden_rows(cx, found, attn_mask)
    return cx.b.transpose(found, perm=(0, 2, 1, 3)), None


def _without_hidden_rows(cx: Cx, found: Value, mask: Value) -> Value:
    """Zeros for a query that sees no key, as torch's kernel gives: softmax itself gives NaN.

    found: [B, S, H, D], in which order models go on, so that no copy comes of this.
    """
    b = cx.b
    seen = b.gt(mask, b.scalar(float("-inf"), mask))
    some = b.reduce(seen, kind="any", axes=(cx.type(mask).rank - 1,), keepdims=True)
    whole = [1] * (4 - cx.type(some).rank)
    some = b.transpose(b.reshape(some, dims=(*whole, *cx.dims(some))), perm=(0, 2, 1, 3))
    return b.select(some, found, b.scalar(0, found))


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(
    cx: Cx,
    src: Value,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
    mask: Value = None,
    mask_type: int | None = None,
) -> Value:
    """What torch makes of nn.TransformerEncoderLayer in evaluation: src is [B, S, E]."""
    b = cx.b

    def norm(x: Value, weight: Value, bias: Value) -> Value:
        return b.layer_norm(x, weight, bias, axis=2, epsilon=eps)

    def attend(x: Value) -> Value:
        qkv = linear(cx, x, qkv_weight, qkv_bias)
        found = _self_attention(cx, qkv, num_heads, _scores_mask(cx, mask, mask_type))
        return linear(cx, found, proj_weight, proj_bias)

    def feed(x: Value) -> Value:
        inner = linear(cx, x, ffn_weight_1, ffn_bias_1)
        inner = b.gelu(inner) if use_gelu else b.relu(inner)
        return linear(cx, inner, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = b.add(src, attend(norm(src, norm_weight_1, norm_bias_1)))
        return b.add(x, feed(norm(x, norm_weight_2, norm_bias_2)))
    x = norm(b.add(src, attend(src)), norm_weight_1, norm_bias_1)
    return norm(b.add(x, feed(x)), norm_weight_2, norm_bias_2)


@aten("_native_multi_head_attention")
def multi_head_attention(
    cx: Cx,
    query: Value,
    key: Value,
    value: Value,
    embed_dim: int,
    num_head: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    mask: Value = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Value, Value]:
    """What torch makes of nn.MultiheadAttention in evaluation, of one tensor with itself."""
    if query is not key or key is not value or cx.used(1):
        cx.fail("attention of several tensors, or its weights as a result")
    qkv = linear(cx, query, qkv_weight, qkv_bias)
    found = _self_attention(cx, qkv, num_head, _scores_mask(cx, mask, mask_type))
    return linear(cx, found, proj_weight, proj_bias), None


def _self_attention(cx: Cx, qkv: Value, heads: int, mask: Value) -> Value:
    """[B, S, 3 * E] to [B, S, E]."""
    b = cx.b
    batch, steps, width = cx.dims(qkv)
    each = width // (3 * heads)
    if not isinstance(each, int):
        cx.fail(f"heads of {each} elements")
    apart = b.reshape(qkv, dims=(batch, steps, 3, heads, each))
    parts = []
    for k in range(3):
        one = at(cx, apart, 2, k)
        parts.append(b.transpose(one, perm=(0, 2, 1, 3)))
    operands = parts if mask is None else [*parts, mask]
    found = b.attention(*operands, scale=1 / math.sqrt(each))
    return b.reshape(b.transpose(found, perm=(0, 2, 1, 3)), dims=(batch, steps, heads * each))


def _scores_mask(cx: Cx, mask: Value, mask_type: int | None) -> Value:
    """What is added to the scores: -inf where torch's mask of bools holds.

    mask_type: 0 is a mask [S, S], 1 one of keys [B, S], 2 one [B, H, S, S].
    """
    if mask is None:
        return None
    if mask_type not in (0, 1, 2):
        cx.fail(f"a mask of type {mask_type}")
    kind = cx.result.dtype.name
    if cx.type(mask).dtype.name == "bool":
        outside, zero = cx.b.scalar(float("-inf"), kind), cx.b.scalar(0, kind)
        mask = cx.b.select(mask, outside, zero)
    dims = cx.dims(mask)
    return cx.b.reshape(mask, dims=(dims[0], 1, 1, dims[1])) if mask_type == 1 else mask
