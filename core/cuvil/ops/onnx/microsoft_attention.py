"""com.microsoft: attention in its several forms, and rotary embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.ops.compose.attention import repeated_heads
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.dynamic import as_i64, as_value
from cuvil.ops.onnx.microsoft import MS
from cuvil.ops.onnx.registry import onnx_op

Ints = tuple[int, ...]
FILTER = -10000.0  # what is added to the scores of masked keys


def heads_of(cx: Cx, x: Value, count: int) -> Value:
    """[B, S, N * D] as [B, N, S, D]."""
    batch, steps, width = cx.dims(x)
    if count < 1 or (isinstance(width, int) and width % count):
        cx.bad(f"width {width} does not divide into {count} heads")
    split = cx.b.reshape(x, dims=(batch, steps, count, width // count))
    return cx.b.transpose(split, perm=(0, 2, 1, 3))


def merged(cx: Cx, x: Value) -> Value:
    """[B, N, S, D] as [B, S, N * D]."""
    batch, heads, steps, width = cx.dims(x)
    turned = cx.b.transpose(x, perm=(0, 2, 1, 3))
    return cx.b.reshape(turned, dims=(batch, steps, heads * width))


def _part(cx: Cx, x: Value, axis: int, first: Dim, size: Dim) -> Value:
    dims = list(cx.dims(x))
    starts: list[Dim] = [first if k == axis else 0 for k in range(len(dims))]
    dims[axis] = size
    return cx.b.slice(x, starts=starts, steps=[1] * len(dims), dims=dims)


def _columns(cx: Cx, x: Value, sizes: Sequence[Dim]) -> list[Value]:
    """Parts of the last axis."""
    parts, first = [], 0
    for size in sizes:
        parts.append(_part(cx, x, cx.type(x).rank - 1, first, size))
        first = first + size  # type: ignore[assignment]
    return parts


def attended(
    cx: Cx, q: Value, k: Value, v: Value, masks: Sequence[Value], scale: float, cap: float = 0.0
) -> Value:
    """[B, N, S, Dv]: softmax of scaled scores plus masks, times values; heads of k may repeat."""
    k, v = (repeated_heads(cx, x, cx.dims(q)[1]) for x in (k, v))
    if not scale:
        width = cx.dims(q)[-1]
        if not isinstance(width, int) or not width:
            cx.fail("heads of unknown width need a scale")
        scale = 1 / math.sqrt(width)
    bias = masks[0] if masks else None
    for mask in masks[1:]:
        bias = cx.b.add(bias, mask)
    if not cap:
        operands = [q, k, v] if bias is None else [q, k, v, cx.b.cast(bias, to=_kind(cx, q))]
        return cx.b.attention(*operands, scale=scale, causal=False)
    scores = cx.b.contract(q, k, spec="abmk,abnk->abmn")
    scores = cx.b.tanh(cx.b.mul(scores, cx.b.scalar(scale / cap, scores)))
    scores = cx.b.mul(scores, cx.b.scalar(cap, scores))
    scores = scores if bias is None else cx.b.add(scores, cx.b.cast(bias, to=_kind(cx, q)))
    return cx.b.contract(cx.b.softmax(scores, axis=3), v, spec="abmn,abne->abme")


def _kind(cx: Cx, x: Value) -> str:
    return cx.type(x).dtype.name


def _where(cx: Cx, keep: Value, fill: float) -> Value:
    """0 where a key counts, else `fill`."""
    zero = cx.b.scalar(0, "f32")
    return cx.b.select(keep, zero, cx.b.scalar(fill, "f32"))


def _causal(cx: Cx, rows: Dim, keys: Dim, fill: float) -> Value:
    """[S, T]: a query sees keys up to its own, the last query all of them."""
    row = cx.b.add(cx.b.iota(dims=(rows, 1), axis=0), as_value(cx, keys - rows))
    return _where(cx, cx.b.le(cx.b.iota(dims=(1, keys), axis=1), row), fill)


def _padding(cx: Cx, mask: Value, batch: Dim, keys: Dim, rows: Dim, fill: float) -> Value:
    """A mask [B], [B, T], [B, S, T] or [B, 1, M, M] (or an end of every sequence) as a bias."""
    b, kind = cx.b, cx.type(mask)
    if kind.rank == 1:
        if kind.dims[0] != batch:
            cx.fail("a mask with starts of sequences is not supported")
        place = b.iota(dims=(1, 1, 1, keys), axis=3)
        end = b.reshape(as_i64(cx, mask), dims=(batch, 1, 1, 1))
        return _where(cx, b.lt(place, end), fill)
    if kind.rank == 4:  # the rows and columns of the current steps
        part = _part(cx, _part(cx, mask, 2, keys - rows, rows), 3, 0, keys)
        return _where(cx, _holds(cx, part), fill)
    dims = (
        (kind.dims[0], 1, 1, kind.dims[1]) if kind.rank == 2 else (kind.dims[0], 1, *kind.dims[1:])
    )
    return _where(cx, _holds(cx, b.reshape(mask, dims=dims)), fill)


def _holds(cx: Cx, mask: Value) -> Value:
    return mask if _kind(cx, mask) == "bool" else cx.b.cast(mask, to="bool")


@onnx_op("Attention", domain=MS)
def attention(
    cx: Cx,
    x: Value,
    weights: Value,
    bias: Value = None,
    mask: Value = None,
    past: Value = None,
    attention_bias: Value = None,
    past_length: Value = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = FILTER,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Ints = (),
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Value, ...]:
    """Self-attention whose projections are one product; past and present hold keys and values."""
    if do_rotary or past_present_share_buffer or past_length is not None:
        cx.fail("rotary embeddings or a shared buffer inside Attention are not supported")
    joined = cx.b.contract(x, weights, spec="abk,kn->abn")
    joined = joined if bias is None else cx.b.add(joined, bias)
    sizes: list[Dim] = list(qkv_hidden_sizes) or [cx.dims(weights)[1] // 3] * 3
    masks = [] if attention_bias is None else [attention_bias]
    return self_attended(
        cx, joined, sizes, mask, past, masks, num_heads, bool(unidirectional), scale,
        mask_filter_value,
    )  # fmt: skip


def self_attended(
    cx: Cx,
    joined: Value,
    sizes: Sequence[Dim],
    mask: Value,
    past: Value,
    masks: list[Value],
    num_heads: int,
    causal: bool,
    scale: float,
    filtered: float,
) -> tuple[Value, ...]:
    """(attention [B, S, W], present) of queries, keys and values side by side in one tensor."""
    b = cx.b
    q, k, v = (heads_of(cx, part, num_heads) for part in _columns(cx, joined, sizes))
    if past is not None:
        _, batch, heads, steps, width = cx.dims(past)
        before = [
            b.reshape(_part(cx, past, 0, n, 1), dims=(batch, heads, steps, width)) for n in (0, 1)
        ]
        k, v = (b.concat(old, new, axis=2) for old, new in zip(before, (k, v), strict=True))
    rows, keys = cx.dims(q)[2], cx.dims(k)[2]
    if mask is not None:
        masks.append(_padding(cx, mask, cx.dims(q)[0], keys, rows, filtered))
    if causal:
        masks.append(_causal(cx, rows, keys, filtered))
    y = merged(cx, attended(cx, q, k, v, masks, scale))
    if not any(cx.outputs[1:]):
        return (y,)
    pair = [b.reshape(t, dims=(1, *cx.dims(t))) for t in (k, v)]
    return y, b.concat(*pair, axis=0)


@onnx_op("MultiHeadAttention", domain=MS)
def multi_head_attention(
    cx: Cx,
    query: Value,
    key: Value = None,
    value: Value = None,
    bias: Value = None,
    mask: Value = None,
    attention_bias: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    past_length: Value = None,
    indirection: Value = None,
    *,
    num_heads: int,
    mask_filter_value: float = FILTER,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Value, ...]:
    """Attention between projected queries, keys and values: apart, or packed [B, S, N, 3, D]."""
    if indirection is not None or past_length is not None:
        cx.fail("a shared buffer is not supported")
    q, k, v = _projected(cx, query, key, value, bias, num_heads)
    if past_key is not None and past_value is not None:
        k = cx.b.concat(past_key, k, axis=2)
        v = cx.b.concat(past_value, v, axis=2)
    rows, keys = cx.dims(q)[2], cx.dims(k)[2]
    masks = [] if attention_bias is None else [attention_bias]
    if mask is not None:
        masks.append(_padding(cx, mask, cx.dims(q)[0], keys, rows, mask_filter_value))
    if unidirectional:
        masks.append(_causal(cx, rows, keys, mask_filter_value))
    return merged(cx, attended(cx, q, k, v, masks, scale)), k, v


def _projected(
    cx: Cx, query: Value, key: Value, value: Value, bias: Value, heads: int
) -> tuple[Value, Value, Value]:
    """Queries, keys and values by heads, each with its part of the bias."""
    b = cx.b
    if cx.type(query).rank == 5:  # all three in one
        batch, steps, count, _, width = cx.dims(query)
        parts = [
            b.reshape(_part(cx, query, 3, n, 1), dims=(batch, steps, count * width))
            for n in range(3)
        ]
    elif key is None:
        cx.fail("queries alone must be packed as [B, S, N, 3, D]")
    elif cx.type(key).rank == 5:
        batch, steps, count, _, width = cx.dims(key)
        parts = [query] + [
            b.reshape(_part(cx, key, 3, n, 1), dims=(batch, steps, count * width)) for n in range(2)
        ]
    else:
        parts = [query, key, value]
    if bias is not None:
        sizes = [cx.dims(p)[-1] if cx.type(p).rank == 3 else 0 for p in parts]
        ends = _columns(cx, bias, sizes)
        parts = [
            b.add(p, e) if cx.type(p).rank == 3 else p for p, e in zip(parts, ends, strict=True)
        ]
    q, k, v = (heads_of(cx, p, heads) if cx.type(p).rank == 3 else p for p in parts)
    return q, k, v


@onnx_op("RotaryEmbedding", domain=MS)
def rotary_embedding(
    cx: Cx,
    x: Value,
    positions: Value,
    cos: Value,
    sin: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    """Pairs of elements turned by angles that grow with the position."""
    if is_packed_batching or scale != 1:
        cx.fail("packed batches or a scale are not supported")
    flat = cx.type(x).rank == 3
    if flat:
        width = rotary_embedding_dim or 2 * _static(cx, cx.dims(cos)[1])
        count = num_heads or _static(cx, cx.dims(x)[2]) // width
        heads = heads_of(cx, x, count)
    else:
        heads = x
    batch, _, steps, _ = cx.dims(heads)
    places = as_i64(cx, positions)
    if cx.type(places).size == 1:  # the position of the first step
        first = cx.b.reshape(places, dims=(1, 1))
        places = cx.b.add(cx.b.iota(dims=(1, steps), axis=1), first)
    places = cx.b.broadcast(places, dims=(batch, steps))
    y = turned(cx, heads, places, cos, sin, bool(interleaved), rotary_embedding_dim)
    return merged(cx, y) if flat else y


def _static(cx: Cx, dim: Dim) -> int:
    if not isinstance(dim, int):
        cx.fail(f"the width {dim} must be a number")
    return dim


def turned(
    cx: Cx, x: Value, places: Value, cos: Value, sin: Value, interleaved: bool, width: int = 0
) -> Value:
    """x [B, N, S, D] at places [B, S]; only the first `width` elements (0: all) take part."""
    b, (batch, heads, steps, full) = cx.b, cx.dims(x)
    rotary: Dim = width or full
    half = cx.dims(cos)[1]
    if width:
        half = width // 2
    shape = (batch, 1, steps, half)
    c, s = (
        b.reshape(b.gather(_part(cx, table, 1, 0, half), places, axis=0), dims=shape)
        for table in (cos, sin)
    )
    inner = x if rotary == full else _part(cx, x, 3, 0, rotary)
    if interleaved:
        pairs = b.reshape(inner, dims=(batch, heads, steps, half, 2))
        first, second = (
            b.reshape(_part(cx, pairs, 4, n, 1), dims=(batch, heads, steps, half)) for n in (0, 1)
        )
    else:
        first, second = _part(cx, inner, 3, 0, half), _part(cx, inner, 3, half, half)
    left = b.sub(b.mul(first, c), b.mul(second, s))
    right = b.add(b.mul(first, s), b.mul(second, c))
    if interleaved:
        apart = (batch, heads, steps, half, 1)
        y = b.concat(b.reshape(left, dims=apart), b.reshape(right, dims=apart), axis=4)
        y = b.reshape(y, dims=(batch, heads, steps, rotary))
    else:
        y = b.concat(left, right, axis=3)
    if rotary == full:
        return y
    return b.concat(y, _part(cx, x, 3, rotary, full - rotary), axis=3)


@onnx_op("GroupQueryAttention", domain=MS)
def group_query_attention(
    cx: Cx,
    query: Value,
    key: Value = None,
    value: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    lengths: Value = None,
    total: Value = None,
    cos: Value = None,
    sin: Value = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    do_rotary: int = 0,
    local_window_size: int = -1,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
) -> tuple[Value, ...]:
    """Causal attention with a cache of keys and values, whose sequences end at `lengths` + 1.

    The present cache is as long as the past one or, where that is less, as `total`.
    """
    if smooth_softmax or lengths is None or total is None or (key is None) != (value is None):
        cx.fail("a smooth softmax, or no lengths, is not supported")
    b = cx.b
    if key is None:
        width = cx.dims(query)[2] // (num_heads + 2 * kv_num_heads)
        own = [num_heads * width, kv_num_heads * width, kv_num_heads * width]
        query, key, value = _columns(cx, query, own)
    q = heads_of(cx, query, num_heads)
    k, v = (heads_of(cx, x, kv_num_heads) for x in (key, value))
    batch, _, rows, width = cx.dims(q)
    ends = b.add(b.reshape(as_i64(cx, lengths), dims=(batch, 1)), b.scalar(1, "i64"))
    before = b.max(b.sub(ends, as_value(cx, rows)), b.scalar(0, "i64"))  # of the past, [B, 1]
    places = b.add(before, b.iota(dims=(1, rows), axis=1))
    if do_rotary:
        q, k = (turned(cx, x, places, cos, sin, bool(rotary_interleaved)) for x in (q, k))
    if past_key is None or past_value is None:
        past_key = past_value = b.broadcast(b.scalar(0, k), dims=(batch, kv_num_heads, 0, width))
    room = cx.dims(past_key)[2]
    longest = b.max(b.reshape(as_i64(cx, total), dims=()), as_value(cx, room))
    keys = cx.bind(longest, "present")
    present = [_cached(cx, old, new, before, keys) for old, new in ((past_key, k), (past_value, v))]
    column = b.iota(dims=(1, 1, keys), axis=2)
    row = b.reshape(places, dims=(batch, rows, 1))
    seen = b.le(column, row)
    if local_window_size >= 0:
        seen = b.and_(seen, b.gt(column, b.sub(row, b.scalar(local_window_size, "i64"))))
    mask = _where(cx, b.reshape(seen, dims=(batch, 1, rows, keys)), -math.inf)
    y = attended(cx, q, present[0], present[1], [mask], scale, softcap)
    return merged(cx, y), *present


def _cached(cx: Cx, old: Value, new: Value, before: Value, keys: Dim) -> Value:
    """The past with the new steps behind the first `before` of it, `keys` steps long."""
    b, (batch, heads, room, width), rows = cx.b, cx.dims(old), cx.dims(new)[2]
    both = b.concat(old, new, axis=2)
    at = b.iota(dims=(1, keys), axis=1)
    fresh = b.sub(at, before)
    inside = b.and_(b.ge(fresh, b.scalar(0, "i64")), b.lt(fresh, as_value(cx, rows)))
    last = as_value(cx, room + rows - 1)
    source = b.select(inside, b.add(fresh, as_value(cx, room)), b.min(at, last))
    source = b.reshape(source, dims=(batch, 1, keys, 1))
    return b.gather_elements(both, b.broadcast(source, dims=(batch, heads, keys, width)), axis=2)
