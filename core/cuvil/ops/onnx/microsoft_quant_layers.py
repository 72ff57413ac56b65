"""com.microsoft: layers whose weights are held in few bits."""

from __future__ import annotations

import numpy as np

from cuvil.ops.compose.helpers import axis_in
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.indexing import gather
from cuvil.ops.onnx.microsoft import MS, SMALL, embedded
from cuvil.ops.onnx.microsoft_attention import FILTER, self_attended
from cuvil.ops.onnx.microsoft_quant import (
    constant_of,
    matmul_integer_to_float,
    unpacked,
)
from cuvil.ops.onnx.quant import dequantize_linear
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("QAttention", domain=MS)
def quantised_attention(
    cx: Cx,
    x: Value,
    weights: Value,
    bias: Value,
    x_scale: Value,
    weight_scale: Value,
    mask: Value = None,
    x_zero: Value = None,
    weight_zero: Value = None,
    past: Value = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = FILTER,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Value, ...]:
    """Attention whose projection is an integer product, scaled back to floats."""
    if do_rotary or past_present_share_buffer:
        cx.fail("rotary embeddings or a shared buffer inside QAttention are not supported")
    joined = matmul_integer_to_float(
        cx, x, weights, x_scale, weight_scale, x_zero, weight_zero, bias
    )
    sizes = [cx.dims(weights)[1] // 3] * 3
    return self_attended(
        cx, joined, sizes, mask, past, [], num_heads, bool(unidirectional), scale,
        mask_filter_value,
    )  # fmt: skip


@onnx_op("QEmbedLayerNormalization", domain=MS)
def quantised_embedding(
    cx: Cx,
    ids: Value,
    segments: Value = None,
    words: Value = None,
    positions: Value = None,
    kinds: Value = None,
    scale: Value = None,
    shift: Value = None,
    mask: Value = None,
    words_scale: Value = None,
    positions_scale: Value = None,
    kinds_scale: Value = None,
    scale_scale: Value = None,
    shift_scale: Value = None,
    words_zero: Value = None,
    positions_zero: Value = None,
    kinds_zero: Value = None,
    scale_zero: Value = None,
    shift_zero: Value = None,
    *,
    epsilon: float = SMALL,
) -> tuple[Value, ...]:
    """EmbedLayerNormalization whose tables, scale and shift are held in 8 bits."""

    def plain(value: Value, step: Value, zero: Value) -> Value:
        return None if value is None else dequantize_linear(cx, value, step, zero)

    return embedded(
        cx,
        ids,
        segments,
        plain(words, words_scale, words_zero),
        plain(positions, positions_scale, positions_zero),
        plain(kinds, kinds_scale, kinds_zero),
        plain(scale, scale_scale, scale_zero),
        plain(shift, shift_scale, shift_zero),
        mask,
        epsilon=epsilon,
    )[:2]


@onnx_op("GatherBlockQuantized", domain=MS)
def gather_blocks(
    cx: Cx,
    data: Value,
    indices: Value,
    scales: Value,
    zeros: Value = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Value:
    """Slices of a table held in blocks of few bits, as floats; the table is a constant.

    Elements of u8 hold several numbers each, low bits first, and then no zero point means the
    middle of their range; those of i4 and u4 hold one, about 0.
    """
    table, steps = constant_of(cx, data, "the table"), constant_of(cx, scales, "the scales")
    packed = table.dtype == np.uint8
    if bits not in (4, 8) or (packed and quantize_axis % table.ndim != table.ndim - 1):
        cx.fail(f"{bits} bits, or numbers packed along another axis, are not supported")
    values = (unpacked(table, bits) if packed else table).astype(np.float32)
    at = axis_in(cx, quantize_axis, values.ndim, "quantize_axis")
    points: np.ndarray | int = 1 << (bits - 1) if packed else 0
    if zeros is not None:
        held = constant_of(cx, zeros, "the zero points")
        held = unpacked(held, bits)[..., : steps.shape[at]] if packed else held
        points = _spread(held.astype(np.float32), at, block_size, values.shape[at])
    step = _spread(steps.astype(np.float32), at, block_size, values.shape[at])
    plain = cx.b.const((values - points) * step, cx.type(scales).dtype.name)
    return gather(cx, plain, indices, axis=gather_axis)


def _spread(blocks: np.ndarray, axis: int, size: int, extent: int) -> np.ndarray:
    """One number for each element of the blocks of an axis."""
    return np.take(blocks.repeat(size, axis), np.arange(extent), axis)
