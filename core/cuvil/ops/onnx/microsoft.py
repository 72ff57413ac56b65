"""com.microsoft: activations, products and normalisations that ONNX Runtime's optimiser fuses."""

from __future__ import annotations

from cuvil.ops.compose.helpers import axis_in, wide
from cuvil.ops.compose.matmul import matmul_of
from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.conv import conv
from cuvil.ops.onnx.matmul import gemm
from cuvil.ops.onnx.norm import EPSILON, layer_norm
from cuvil.ops.onnx.registry import onnx_op

MS = "com.microsoft"
SMALL = 9.999999960041972e-13  # 1e-12 in float32
Ints = tuple[int, ...]
Floats = tuple[float, ...]


@onnx_op("Gelu", domain=MS)
def gelu(cx: Cx, x: Value) -> Value:
    """By erf."""
    return cx.b.gelu(x)


@onnx_op("BiasGelu", domain=MS)
def bias_gelu(cx: Cx, x: Value, bias: Value) -> Value:
    """Gelu of a sum."""
    return cx.b.gelu(cx.b.add(x, bias))


@onnx_op("FastGelu", domain=MS)
def fast_gelu(cx: Cx, x: Value, bias: Value = None) -> Value:
    """By tanh, of a sum if there is a bias."""
    return cx.b.gelu_tanh(x if bias is None else cx.b.add(x, bias))


@onnx_op("QuickGelu", domain=MS)
def quick_gelu(cx: Cx, x: Value, *, alpha: float = 1.7020000219345093) -> Value:
    """x * sigmoid(alpha * x)."""
    return cx.b.mul(x, cx.b.sigmoid(cx.b.mul(x, cx.b.scalar(alpha, x))))


def activated(cx: Cx, x: Value, name: str, params: Floats) -> Value:
    """A fused activation by ONNX's name; parameters in the order of its attributes."""
    names: dict[str, tuple[str, tuple[str, ...]]] = {
        "Relu": ("relu", ()),
        "Tanh": ("tanh", ()),
        "Sigmoid": ("sigmoid", ()),
        "LeakyRelu": ("leaky_relu", ("alpha",)),
        "HardSigmoid": ("hardsigmoid", ("alpha", "beta")),
    }
    if name == "Clip" and len(params) == 2:
        return cx.b.min(cx.b.max(x, cx.b.scalar(params[0], x)), cx.b.scalar(params[1], x))
    if not name:
        return x
    if name not in names:
        cx.fail(f"activation {name!r} is not supported")
    primitive, attrs = names[name]
    return cx.b.emit(primitive, [x], **dict(zip(attrs, params, strict=False)))


@onnx_op("FusedConv", domain=MS)
def fused_conv(
    cx: Cx,
    x: Value,
    w: Value,
    bias: Value = None,
    other: Value = None,
    *,
    activation: str = "",
    activation_params: Floats = (),
    auto_pad: str = "NOTSET",
    dilations: Ints = (),
    group: int = 1,
    kernel_shape: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Value:
    """A convolution, plus a tensor if there is one, through an activation."""
    y = conv(
        cx, x, w, bias, auto_pad=auto_pad, dilations=dilations, group=group,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    y = y if other is None else cx.b.add(y, other)
    return activated(cx, y, activation, activation_params)


@onnx_op("FusedGemm", domain=MS)
def fused_gemm(
    cx: Cx,
    a: Value,
    b: Value,
    c: Value = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's own names
    transB: int = 0,  # noqa: N803
) -> Value:
    """Gemm through an activation."""
    y = gemm(cx, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = (activation_alpha, activation_beta, activation_gamma)
    return activated(cx, y, activation, tuple(v for v in given if v is not None))


@onnx_op("FusedMatMul", domain=MS)
def fused_matmul(
    cx: Cx,
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
    transBatchA: int = 0,  # noqa: N803
    transBatchB: int = 0,  # noqa: N803
) -> Value:
    """alpha * A @ B; the last two axes of either swapped, or the first of the others moved in."""
    left = _turned(cx, a, bool(transA), bool(transBatchA))
    right = _turned(cx, b, bool(transB), bool(transBatchB))
    y = matmul_of(cx, left, right)
    return y if alpha == 1 else cx.b.mul(y, cx.b.scalar(alpha, y))


def _turned(cx: Cx, x: Value, swap: bool, batch: bool) -> Value:
    order = list(range(cx.type(x).rank))
    if batch and len(order) > 2:  # [M, batch..., K] as [batch..., M, K]
        order = [*order[1:-1], order[0], order[-1]]
    if swap and len(order) > 1:
        order[-2:] = order[:-3:-1]
    return x if order == sorted(order) else cx.b.transpose(x, perm=order)


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_norm(
    cx: Cx, x: Value, scale: Value, *, axis: int = -1, epsilon: float = EPSILON, stash_type: int = 1
) -> tuple[Value, ...]:
    """(x over its root mean square, then scale; the inverse of that). ONNX Runtime registers it in
    ONNX's own domain."""
    rank = cx.type(x).rank
    at = axis_in(cx, axis, rank)
    y = cx.b.rms_norm(x, scale, axis=at, epsilon=epsilon)
    if not any(cx.outputs[1:]):
        return (y,)
    b, value = cx.b, wide(cx, x)
    mean = b.reduce(b.mul(value, value), kind="mean", axes=tuple(range(at, rank)), keepdims=True)
    return y, b.reciprocal(b.sqrt(b.add(mean, b.scalar(epsilon, mean))))


@onnx_op("SkipLayerNormalization", domain=MS)
def skip_layer_norm(
    cx: Cx,
    x: Value,
    skip: Value,
    scale: Value,
    shift: Value = None,
    bias: Value = None,
    *,
    epsilon: float = SMALL,
) -> tuple[Value, ...]:
    """(layer norm of a sum, mean, inverse deviation, the sum)."""
    total = _sum(cx, x, skip, bias)
    found = layer_norm(cx, total, scale, shift, axis=-1, epsilon=epsilon)
    y, *statistics = found if isinstance(found, tuple) else (found, None, None)
    return y, *statistics, total


@onnx_op("SkipSimplifiedLayerNormalization", domain=MS)
def skip_simplified_layer_norm(
    cx: Cx, x: Value, skip: Value, scale: Value, bias: Value = None, *, epsilon: float = SMALL
) -> tuple[Value, ...]:
    """(RMS norm of a sum, nothing, nothing, the sum)."""
    total = _sum(cx, x, skip, bias)
    y = cx.b.rms_norm(total, scale, axis=cx.type(x).rank - 1, epsilon=epsilon)
    return y, None, None, total


def _sum(cx: Cx, x: Value, skip: Value, bias: Value) -> Value:
    total = cx.b.add(x, skip)
    return total if bias is None else cx.b.add(total, bias)


@onnx_op("EmbedLayerNormalization", domain=MS)
def embedded(
    cx: Cx,
    ids: Value,
    segments: Value = None,
    words: Value = None,
    positions: Value = None,
    kinds: Value = None,
    scale: Value = None,
    shift: Value = None,
    mask: Value = None,
    places: Value = None,
    *,
    epsilon: float = SMALL,
    mask_index_type: int = 0,
) -> tuple[Value, ...]:
    """(layer norm of a sum of embeddings, tokens per sequence by the mask, the sum)."""
    b, (_, steps) = cx.b, cx.dims(ids)
    if None in (words, positions, scale, shift):
        cx.bad("needs embeddings of words and positions, scale and shift")
    total = b.gather(words, ids, axis=0)
    if places is None:
        width = cx.dims(positions)[1]
        place = b.slice(positions, starts=(0, 0), steps=(1, 1), dims=(steps, width))
    else:
        place = b.gather(positions, places, axis=0)
    total = b.add(total, place)
    if kinds is not None and segments is not None:
        total = b.add(total, b.gather(kinds, segments, axis=0))
    y = b.layer_norm(total, scale, shift, axis=2, epsilon=epsilon)
    count = None
    if mask is not None:
        count = b.reduce(b.cast(mask, to="i32"), kind="sum", axes=(1,), keepdims=False)
    elif cx.outputs[1:2] == [True]:
        count = b.broadcast(b.scalar(0, "i32"), dims=cx.dims(ids)[:1])
    return y, count, total


@onnx_op("BiasAdd", domain=MS)
def bias_add(cx: Cx, x: Value, bias: Value, skip: Value) -> Value:
    """The sum of three tensors."""
    return _sum(cx, x, bias, skip)
