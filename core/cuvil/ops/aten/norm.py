"""Normalisations and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuvil.ir.dims import Dim
from cuvil.ops.aten.context import Cx, Value
from cuvil.ops.aten.promotion import cast
from cuvil.ops.aten.registry import aten, aten_rows
from cuvil.ops.compose.helpers import axis_in, narrow, wide
from cuvil.ops.compose.norm import normalised, per_channel, statistics


def softmax(primitive: str) -> Callable[..., Value]:
    """Over one axis."""

    def compose(cx: Cx, x: Value, dim: int, half_to_float: bool = False) -> Value:
        value = cast(cx, x, cx.result.dtype.name)
        if not cx.type(x).rank:
            value = cx.b.reshape(value, dims=(1,))
            return cx.b.reshape(cx.b.emit(primitive, [value], axis=0), dims=())
        return cx.b.emit(primitive, [value], axis=axis_in(cx, dim, cx.type(x).rank, "dim"))

    return compose


aten_rows(softmax, {"_softmax": "softmax", "_log_softmax": "log_softmax"})


@aten("native_layer_norm")
def layer_norm(
    cx: Cx, x: Value, shape: Sequence[Dim], weight: Value, bias: Value, eps: float
) -> tuple[Value, ...]:
    """Mean 0 and variance 1 over the last axes, then scale and shift; with both moments."""
    axis = cx.type(x).rank - len(shape)
    scaled = weight is not None
    result = cx.b.layer_norm(
        *([x, weight, bias] if scaled and bias is not None else [x, weight] if scaled else [x]),
        axis=axis,
        epsilon=eps,
    )
    if bias is not None and not scaled:
        result = cx.b.add(result, bias)
    return result, *_moments(cx, x, axis, eps)


def _moments(cx: Cx, x: Value, axis: int, eps: float) -> tuple[Value, Value]:
    """(mean, 1 / deviation) where they are read."""
    if not (cx.used(1) or cx.used(2)):
        return None, None
    mean, deviation = statistics(cx, wide(cx, x), axis, eps)
    kinds = [cx.out[k] for k in (1, 2)]
    first, second = (
        v if kind is None else cast(cx, v, kind.dtype.name)
        for v, kind in zip((mean, deviation), kinds, strict=True)
    )
    return first, second


@aten("_fused_rms_norm")
def rms_norm(
    cx: Cx, x: Value, shape: Sequence[Dim], weight: Value, eps: float | None
) -> tuple[Value, ...]:
    """x over the root of its mean square over the last axes, times the weight."""
    axis = cx.type(x).rank - len(shape)
    least = 1.1920928955078125e-07 if eps is None else eps  # float32's own epsilon
    found = cx.b.rms_norm(*([x] if weight is None else [x, weight]), axis=axis, epsilon=least)
    if cx.used(1):
        cx.fail("the deviation as a result")
    return found, None


@aten("_native_batch_norm_legit_no_training")
def batch_norm(
    cx: Cx,
    x: Value,
    weight: Value,
    bias: Value,
    mean: Value,
    var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """x times a factor plus a shift per channel; what training would save is empty."""
    rank = cx.type(x).rank
    scale = cx.b.broadcast(cx.b.scalar(1, var), dims=cx.dims(var)) if weight is None else weight
    shift = cx.b.broadcast(cx.b.scalar(0, var), dims=cx.dims(var)) if bias is None else bias
    found = normalised(cx, x, scale, shift, mean, var, eps, lambda v: per_channel(cx, v, rank))
    empty = cx.b.broadcast(cx.b.scalar(0, "f32"), dims=(0,))
    saved = [None if t is None else cast(cx, empty, t.dtype.name) for t in cx.out[1:]]
    return found, *saved


@aten("native_group_norm")
def group_norm(
    cx: Cx,
    x: Value,
    weight: Value,
    bias: Value,
    batch: Dim,
    channels: Dim,
    size: Dim,
    groups: int,
    eps: float,
) -> tuple[Value, ...]:
    """Every group of channels with mean 0 and variance 1, then scale and shift per channel."""
    b, rank = cx.b, cx.type(x).rank
    flat = wide(cx, b.reshape(x, dims=(batch, groups, channels // groups * size)))
    found = b.reshape(b.layer_norm(flat, axis=2, epsilon=eps), dims=cx.dims(x))
    if weight is not None:
        found = b.mul(found, per_channel(cx, wide(cx, weight), rank))
    if bias is not None:
        found = b.add(found, per_channel(cx, wide(cx, bias), rank))
    if not (cx.used(1) or cx.used(2)):
        return narrow(cx, found, x), None, None
    mean, deviation = (
        narrow(cx, b.reshape(v, dims=(batch, groups)), x) for v in statistics(cx, flat, 2, eps)
    )
    return narrow(cx, found, x), mean, deviation
