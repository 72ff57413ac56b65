"""Normalisations."""

from __future__ import annotations

from cuvil.ir.dims import Dim, product
from cuvil.ops.compose.helpers import axes_in, axis_in, narrow, wide
from cuvil.ops.compose.norm import normalised, per_channel, statistics
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.registry import onnx_op

EPSILON = 9.999999747378752e-06  # 1e-5 in float32, as ONNX's defaults are


@onnx_op("BatchNormalization")
def batch_norm_legacy(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    var: Value,
    *,
    epsilon: float = EPSILON,
    momentum: float = 0.9,
    spatial: int = 1,
    is_test: int = 1,
    consumed_inputs: tuple[int, ...] = (),
) -> Value:
    """Before opset 9 parameters may belong to single activations [C, ...] instead of channels.

    A node that names more outputs than one trains, which is refused.
    """
    if spatial:
        return batch_norm(cx, x, scale, bias, mean, var, epsilon=epsilon)
    _only_inference(cx)
    return normalised(cx, x, scale, bias, mean, var, epsilon, lambda v: v)


@onnx_op("BatchNormalization", since=9)
def batch_norm(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    var: Value,
    *,
    epsilon: float = EPSILON,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Value | tuple[Value, ...]:
    """x times a factor plus a shift per channel, both made of the parameters."""
    if training_mode:
        return _batch_norm_training(cx, x, scale, bias, mean, var, epsilon, momentum)
    _only_inference(cx)
    rank = cx.type(x).rank
    return normalised(cx, x, scale, bias, mean, var, epsilon, lambda v: per_channel(cx, v, rank))


def _only_inference(cx: Cx) -> None:
    if any(cx.outputs[1:]):
        cx.fail("statistics as outputs (training) are not supported: Cuvil compiles inference")


def _batch_norm_training(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    var: Value,
    epsilon: float,
    momentum: float,
) -> tuple[Value, ...]:
    """Statistics of the batch normalise; running ones are mixed with them."""
    b, rank = cx.b, cx.type(x).rank
    axes = tuple(k for k in range(rank) if k != 1)
    value = wide(cx, x)
    own_mean = b.reduce(value, kind="mean", axes=axes, keepdims=False)
    centred = b.sub(value, per_channel(cx, own_mean, rank))
    own_var = b.reduce(b.mul(centred, centred), kind="mean", axes=axes, keepdims=False)
    result = normalised(
        cx, x, scale, bias, own_mean, own_var, epsilon, lambda v: per_channel(cx, v, rank)
    )

    def mixed(old: Value, new: Value) -> Value:
        new = narrow(cx, new, old)
        kept = b.mul(old, b.scalar(momentum, old))
        return b.add(kept, b.mul(new, b.scalar(1 - momentum, old)))

    return result, mixed(mean, own_mean), mixed(var, own_var)


@onnx_op("LayerNormalization", since=17)
def layer_norm(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value = None,
    *,
    axis: int = -1,
    epsilon: float = EPSILON,
    stash_type: int = 1,
) -> Value | tuple[Value, ...]:
    """Mean 0 and variance 1 over the axes from `axis` on, then scale and bias."""
    at = axis_in(cx, axis, cx.type(x).rank)
    operands = [x, scale] if bias is None else [x, scale, bias]
    result = cx.b.layer_norm(*operands, axis=at, epsilon=epsilon)
    if not any(cx.outputs[1:]):
        return result
    return result, *statistics(cx, wide(cx, x), at, epsilon)


@onnx_op("RMSNormalization", since=23)
def rms_norm(
    cx: Cx,
    x: Value,
    scale: Value,
    *,
    axis: int = -1,
    epsilon: float = EPSILON,
    stash_type: int = 1,
) -> Value:
    """x over its root mean square over the axes from `axis` on, then scale."""
    return cx.b.rms_norm(x, scale, axis=axis_in(cx, axis, cx.type(x).rank), epsilon=epsilon)


def _groups_norm(cx: Cx, x: Value, groups: Dim, epsilon: float) -> Value:
    """Layer norm of every group of channels with its spatial axes, in x's shape."""
    dims = cx.dims(x)
    flat = cx.b.reshape(x, dims=(dims[0], groups, product(dims[1:]) // groups))
    return cx.b.reshape(cx.b.layer_norm(flat, axis=2, epsilon=epsilon), dims=dims)


@onnx_op("InstanceNormalization")
def instance_norm(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    epsilon: float = EPSILON,
    consumed_inputs: tuple[int, ...] = (),
) -> Value:
    """Every channel of every image by itself."""
    rank = cx.type(x).rank
    value = _groups_norm(cx, x, cx.dims(x)[1], epsilon)
    value = cx.b.mul(value, per_channel(cx, scale, rank))
    return cx.b.add(value, per_channel(cx, bias, rank))


@onnx_op("GroupNormalization", since=18)
def group_norm_legacy(
    cx: Cx, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float = EPSILON
) -> Value:
    """Before opset 21 scale and bias belong to groups."""
    dims = cx.dims(x)
    spread = (num_groups, dims[1] // num_groups)
    scale, bias = (
        cx.b.reshape(
            cx.b.broadcast(cx.b.reshape(v, dims=(num_groups, 1)), dims=spread), dims=(dims[1],)
        )
        for v in (scale, bias)
    )
    return group_norm(cx, x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@onnx_op("GroupNormalization", since=21)
def group_norm(
    cx: Cx,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    num_groups: int,
    epsilon: float = EPSILON,
    stash_type: int = 1,
) -> Value:
    """Groups of channels, each with its spatial axes, by themselves; scale and bias by channel."""
    channels = cx.dims(x)[1]
    if num_groups < 1 or (isinstance(channels, int) and channels % num_groups):
        cx.bad(f"{channels} channels in {num_groups} groups")
    rank, like = cx.type(x).rank, x
    value = _groups_norm(cx, wide(cx, x), num_groups, epsilon)
    value = cx.b.mul(value, per_channel(cx, narrow(cx, scale, value), rank))
    return narrow(cx, cx.b.add(value, per_channel(cx, narrow(cx, bias, value), rank)), like)


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_norm(cx: Cx, x: Value, *, axes: tuple[int, ...] = (0, 2, 3)) -> Value:
    """Mean 0 and variance 1 over the axes.

    Not by ONNX's function body, E(x^2) - E(x)^2, which cancels where the mean is large. Centred
    twice, since the first mean is rounded.
    """
    b, value = cx.b, wide(cx, x)
    at = axes_in(cx, axes, cx.type(x).rank)
    for _ in range(2):
        value = b.sub(value, b.reduce(value, kind="mean", axes=at, keepdims=True))
    variance = b.reduce(b.mul(value, value), kind="mean", axes=at, keepdims=True)
    deviation = b.add(b.sqrt(variance), b.scalar(1e-9, variance))
    return narrow(cx, b.div(value, deviation), x)


MOST_NEIGHBOURS = 1 << 31


@onnx_op("LRN")
def lrn(
    cx: Cx,
    x: Value,
    *,
    size: int,
    alpha: float = 9.999999747378752e-05,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Value:
    """x over (bias + alpha / size * sum of squares of `size` neighbouring channels) ** beta."""
    n, c, *space = cx.dims(x)
    if size >= MOST_NEIGHBOURS:
        cx.bad(f"size={size} is not below {MOST_NEIGHBOURS}")
    low, high = (size - 1) // 2, size // 2
    if isinstance(c, int) and size > 2 * c:  # there are no channels further away
        low, high = min(low, c), min(high, c)
        alpha = alpha * (low + high + 1) / size
    image = cx.b.reshape(cx.b.mul(x, x), dims=(n, 1, c, product(space)))
    mean = cx.b.emit(
        "pool",
        [image],
        kind="avg",
        kernel=(low + high + 1, 1),
        strides=(1, 1),
        dilations=(1, 1),
        pads=(low, 0, high, 0),
        out=(c, product(space)),
        count_include_pad=True,
    )
    mean = cx.b.reshape(mean, dims=cx.dims(x))
    base = cx.b.add(cx.b.mul(mean, cx.b.scalar(alpha, x)), cx.b.scalar(bias, x))
    return cx.b.div(x, cx.b.pow(base, cx.b.scalar(beta, x)))


@onnx_op("LpNormalization")
def lp_normalization(cx: Cx, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    """x over its p-norm along an axis; 0 where the norm is 0."""
    if p not in (1, 2):
        cx.bad(f"p={p} is neither 1 nor 2")
    at = axis_in(cx, axis, cx.type(x).rank)
    parts = cx.b.abs(x) if p == 1 else cx.b.mul(x, x)
    norm = cx.b.reduce(parts, kind="sum", axes=(at,), keepdims=True)
    norm = norm if p == 1 else cx.b.sqrt(norm)
    zero = cx.b.scalar(0, x)
    return cx.b.select(cx.b.eq(norm, zero), zero, cx.b.div(x, norm))
